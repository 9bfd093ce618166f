// A remote worker in some forty lines of Node, without our SDK, by SPEC 14: first the agent, then the worker.
// The server runs with `--agent remote`. Here: `npm install`, then `node remote_worker.mjs ws://127.0.0.1:8787`.
import { randomUUID as id } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws";

// Streams words, asks a person, runs a tool. Each await returns when the server has it, and throws after a stop.
async function agent(prompt, { write, name, append, ask, signal }) {
  const [step_id, part_id, tool] = [id(), id(), id()];
  await write({ op: "add_part", part: { type: "text", part_id, step_id, text: "", state: "streaming" } });
  name(0, part_id); // deltas are small: they have a number for their part
  for (const word of `You said: ${prompt} Shall I shout it?`.match(/\S+\s*/g)) {
    await append(0, word);
    await sleep(20, null, { signal });
  }
  const call = { type: "tool", part_id: tool, step_id, tool_call_id: tool, tool_name: "shout", state: "ready" };
  await write({ op: "add_part", part: { ...call, input: prompt } });
  await write({ op: "end_step", step_id });
  const move = (state, more) => write({ op: "move_tool", part_id: tool, state, ...more });
  const { response } = await ask({ title: "May I shout?" }, tool);
  if (response?.decision !== "approved") return move("failed", { error: "Nobody allowed it." });
  await move("running"); // the claim is on disk before the tool runs: it runs at most once
  return move("completed", { output: prompt.toUpperCase() });
}

(function connect() {
  let [socket, calls, waiting, stops, pieces] = [new WebSocket(process.argv[2], "midstream.v1.json"), 0, {}, {}, {}];
  const send = (...frame) => socket.send(JSON.stringify(frame));
  const call = (method, params) => (send("call", ++calls, method, params), until(calls));
  const until = (key) => new Promise((resolve, reject) => (waiting[key] = { resolve, reject }));
  const settle = (key, how, value) => (waiting[key]?.[how](value), delete waiting[key]);
  const stop = (channel, why) => {
    stops[channel].abort(new Error(why));
    for (const key in waiting) if (key.startsWith(`${channel} `)) settle(key, "reject", new Error(why));
  };
  async function run(session_id, turn_id) {
    const { channel, prompt, next_n } = await call("agent.attach", { session_id, turn_id });
    let [{ signal }, n] = [(stops[channel] = new AbortController()), next_n - 1];
    // every write waits for its `ack`: that keeps to any window
    const put = (tag, ...rest) => (signal.throwIfAborted(), send(tag, channel, ++n, ...rest), until(`${channel} ${n}`));
    const [write, append] = [(op) => put("write", op), (handle, text) => put("a", handle, text)];
    const name = (handle, part_id) => send("part", channel, handle, part_id);
    const ask = (request, tool_part_id, interaction_id = id()) => {
      const question = { op: "ask", interaction_id, interaction_type: "approval", request, tool_part_id };
      return Promise.all([until(`${channel} ${interaction_id}`), write(question)]).then(([it]) => it);
    };
    const failed = (error) => ({ state: "failed", failure: { code: "agent_failed", message: `${error}` } });
    const ran = agent(prompt.parts[0].text, { write, name, append, ask, signal });
    await write({ op: "end_turn", ...(await ran.then(() => ({ state: "completed" }), failed)) });
  }
  const on = { // what the server sends, by its tag
    welcome: () => call("agent.register", { name: "node", instance: id(), concurrency: 4 }),
    ping: (nonce) => send("pong", nonce, Date.now()),
    chunk: (n, last, piece) => ((pieces[n] = (pieces[n] ?? "") + piece), last && receive(pieces[n])),
    result: (id, result) => settle(id, "resolve", result),
    error: (id, error) => settle(id, "reject", new Error(error.message)),
    offer: (session_id, turn_id) => run(session_id, turn_id).catch((error) => console.log(`${error}`)),
    ack: (channel, n) => settle(`${channel} ${n}`, "resolve"),
    refused: (channel, n, error) => settle(`${channel} ${n}`, "reject", new Error(error.message)),
    answered: (channel, it) => settle(`${channel} ${it.interaction_id}`, "resolve", it),
    detached: (channel, why) => stop(channel, `The turn is not ours any more: ${why}`),
  };
  const receive = (text) => (([tag, ...rest]) => on[tag]?.(...rest))(JSON.parse(text));
  socket.on("open", () => send("hello", 1, null, { client: "forty lines of Node" })).on("message", receive);
  socket.on("error", (error) => console.log(`${error}`)).on("close", (code) => {
    Object.keys(stops).forEach((channel) => stop(channel, "The connection is lost."));
    if (code < 4500) setTimeout(connect, 1000); // above, it would be sent away again
  });
})();
