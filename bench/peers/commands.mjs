// What every peer in JavaScript does alike: it says where it listens, and obeys lines on its input (commands.py
// says which). It runs under node and under Bun.
//
// A peer gives `publish(room, payload)`, which sends one frame to all subscribers of a room; `buffered()`, which
// says whether any of its sockets holds bytes that the kernel has not taken; perhaps `together(room, write)`,
// which lets its sockets join what `write` publishes, where the library has a documented way to; and `monotonic()`
// where process.hrtime is not the machine's monotonic clock.

import { createInterface } from "node:readline";
import { setTimeout as later } from "node:timers/promises";

/** Wait until the event loop has turned once: what was written is with the kernel, unless its buffers are full. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

async function fan(peer, count, bytes, batch) {
  const payload = "w".repeat(bytes);
  const together = (batch > 1 && peer.together) || ((_room, write) => write());
  for (let sent = 0; sent < count; sent += batch) {
    together(0, () => {
      for (let i = sent; i < Math.min(sent + batch, count); i++) peer.publish(0, payload);
    });
    await turn();
  }
}

async function rooms(peer, number, count, bytes) {
  const payload = "w".repeat(bytes);
  for (let sent = 0; sent < count; sent++) {
    for (let room = 0; room < number; room++) peer.publish(room, payload);
    await turn();
  }
}

/**
 * Publish at a steady rate by absolute deadlines: a frame that is late moves none of those after it. Timers wake up
 * to a millisecond late, and what is due by then goes out together, as in any server that waits for a model: to
 * spin until the exact time would keep the core warm, and hide what it costs to wake.
 */
async function pace(peer, number, rate, count) {
  const total = number * count;
  const start = peer.monotonic();
  const elapsed = () => Number(peer.monotonic() - start);
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor((elapsed() * rate) / 1e9) + 1);
    for (; sent < due; sent++)
      peer.publish(sent % number, `word${peer.monotonic().toString(16).padStart(16, "0")}`);
    const left = (sent * 1e9) / rate - elapsed();
    await (left > 0 ? later(Math.ceil(left / 1e6)) : turn());
  }
}

const orders = { fan, rooms, pace };

/** Obey until the input ends, and exit then. */
export async function obey(port, given) {
  const peer = { monotonic: process.hrtime.bigint, ...given };
  console.log(`ready ws://127.0.0.1:${port}`);
  for await (const line of createInterface({ input: process.stdin })) {
    const [word, ...numbers] = line.split(" ");
    if (word === "cpu") {
      const { user, system } = process.cpuUsage();
      console.log((user + system) / 1e6);
    } else {
      await orders[word](peer, ...numbers.map(Number));
      await turn();
      while (peer.buffered()) await later(1);
      console.log("done");
    }
  }
  process.exit(0);
}

/** Return the room that a URL's query names. */
export const roomOf = (url) => Number(new URL(url, "ws://127.0.0.1").searchParams.get("room"));
