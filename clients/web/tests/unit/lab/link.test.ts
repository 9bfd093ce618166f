import { type Environment, type Socket, systemEnvironment } from "midstream-client";
import { expect, test } from "vitest";
import { LabLink } from "../../../src/lab/link.js";
import { HandClock } from "./clock.js";

/** The far end of a socket, which the test holds. */
class Wired implements Socket {
  binaryType = "blob";
  protocol = "midstream.v1.msgpack";
  onopen: ((event: never) => unknown) | null = null;
  onmessage: ((event: { data: never }) => unknown) | null = null;
  onclose: ((event: never) => unknown) | null = null;
  onerror: ((event: never) => unknown) | null = null;
  readonly sent: (Uint8Array | string)[] = [];
  isClosed = false;

  send(data: Uint8Array<ArrayBuffer> | string): void {
    this.sent.push(data);
  }

  close(): void {
    this.isClosed = true;
  }

  say(...bytes: number[]): void {
    this.onmessage?.({ data: new Uint8Array(bytes).buffer as never });
  }
}

function stage() {
  const clock = new HandClock();
  const wired: Wired[] = [];
  const environment: Environment = {
    ...systemEnvironment(),
    now: () => clock.now(),
    later: (ms, callback) => clock.later(ms, callback),
    socket: () => {
      const made = new Wired();
      wired.push(made);
      return made;
    },
  };
  const link = new LabLink(environment);
  let counted = 0;
  link.onReceived = (bytes) => {
    counted += bytes;
  };
  const open = () => {
    const socket = link.environment().socket("ws://here", []);
    const told: string[] = [];
    socket.onopen = () => told.push("open");
    socket.onmessage = ({ data }: { data: ArrayBuffer }) => told.push(`${data.byteLength} bytes`);
    socket.onclose = ({ code }: { code: number }) => told.push(`closed ${code}`);
    return { socket, told };
  };
  return { clock, link, wired, open, counted: () => counted };
}

test("a cut link loses its connections at once, says no good-bye, and lets none be made", () => {
  const { link, wired, open, clock } = stage();
  const { told } = open();
  wired[0]?.onopen?.(undefined as never);
  link.set({ isCut: true });
  expect(told).toEqual(["open", "closed 1006"]);
  const second = open();
  clock.pass(0);
  expect(second.told).toEqual(["closed 1006"]);
  expect(wired).toHaveLength(1);
});

test("what comes after a cut reaches nobody, and is not counted", () => {
  const { link, wired, open, counted } = stage();
  const { told } = open();
  const far = wired[0];
  link.set({ isCut: true });
  link.set({ isCut: false });
  far?.say(1, 2, 3);
  expect(told).toEqual(["closed 1006"]);
  expect(counted()).toBe(0);
});

test("a frozen link keeps its sockets open and passes nothing in either direction until it thaws", () => {
  const { link, wired, open, counted } = stage();
  const { socket, told } = open();
  link.set({ isFrozen: true });
  wired[0]?.say(1, 2, 3);
  socket.send("hello");
  expect([told, wired[0]?.sent, wired[0]?.isClosed, counted()]).toEqual([[], [], false, 0]);
  link.set({ isFrozen: false });
  expect([told, wired[0]?.sent, counted()]).toEqual([["3 bytes"], ["hello"], 3]);
});

test("a dropped socket is lost once, and the next one is whole", () => {
  const { link, wired, open } = stage();
  const first = open();
  link.drop();
  const second = open();
  wired[1]?.onopen?.(undefined as never);
  expect([first.told, second.told]).toEqual([["closed 1006"], ["open"]]);
});

test("who closes a socket is told nothing more of it", () => {
  const { wired, open } = stage();
  const { socket, told } = open();
  socket.close();
  wired[0]?.say(1);
  wired[0]?.onclose?.({ code: 1000 } as never);
  expect([told, wired[0]?.isClosed]).toEqual([[], true]);
});

test("a client is told when a cut link is whole again, as a browser would, and not of anything else", () => {
  const { link } = stage();
  const told: string[] = [];
  const ignore = link.environment().watch?.((news) => told.push(news));
  link.set({ isFrozen: true });
  link.set({ isFrozen: false, isCut: true });
  expect(told).toEqual([]);
  link.set({ isCut: false });
  expect(told).toEqual(["awake"]);
  ignore?.();
  link.set({ isCut: true });
  link.set({ isCut: false });
  expect(told).toEqual(["awake"]);
});
