// Frames to all subscribers of a topic with Bun's own publish, which frames once for all, joins what is published
// in one turn of the event loop, and writes it to each socket in one send.

import { dlopen, ptr } from "bun:ffi";
import { obey, roomOf } from "./commands.mjs";

const CLOCK_MONOTONIC = 1;
const { symbols } = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
const clients = new Set();

/** Return the monotonic clock in ns: Bun's process.hrtime begins at 0 with the process. */
function monotonic() {
  const time = new BigInt64Array(2);
  symbols.clock_gettime(CLOCK_MONOTONIC, ptr(time));
  return time[0] * 1_000_000_000n + time[1];
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, server) {
    const upgraded = server.upgrade(request, { data: { topic: String(roomOf(request.url)) } });
    return upgraded ? undefined : new Response("WebSocket only\n", { status: 426 });
  },
  websocket: {
    perMessageDeflate: false,
    backpressureLimit: 2 ** 30, // above its limit it drops frames
    idleTimeout: 0, // never: subscribers say nothing
    sendPings: false,
    open(client) {
      clients.add(client);
      client.subscribe(client.data.topic);
    },
    message() {},
    close: (client) => clients.delete(client),
  },
});

obey(server.port, {
  monotonic,
  publish: (room, payload) => server.publish(String(room), Buffer.from(payload)),
  buffered() {
    for (const client of clients) if (client.getBufferedAmount() > 0) return true;
    return false;
  },
});
