/** What a page tells its client: hidden, frozen, restored, on another network. */
import { expect, test, vi } from "vitest";
import { browserEnvironment } from "../src/browser.js";
import { Client, JSON_CODEC, type News } from "../src/index.js";

/** A window with nothing but events. */
function page() {
  const document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const window = Object.assign(new EventTarget(), { document });
  const told: News[] = [];
  const environment = browserEnvironment(window as unknown as Window);
  const ignore = environment.watch?.((news) => told.push(news));
  const tell = (target: EventTarget, name: string, more: object = {}) =>
    target.dispatchEvent(Object.assign(new Event(name), more));
  return { window, document, told, tell, ignore };
}

test("a page that is hidden, frozen or left may be ended, and one that is seen again is awake", () => {
  const { window, document, told, tell } = page();
  document.visibilityState = "hidden";
  tell(document, "visibilitychange");
  tell(document, "freeze");
  tell(document, "resume");
  document.visibilityState = "visible";
  tell(document, "visibilitychange");
  tell(window, "pagehide", { persisted: false });
  expect(told).toEqual(["asleep", "asleep", "awake", "awake", "asleep"]);
});

test("into the back/forward cache no socket goes, and out of it comes a page that is awake", () => {
  const { window, told, tell } = page();
  tell(window, "pageshow", { persisted: false });
  tell(window, "pagehide", { persisted: true });
  tell(window, "pageshow", { persisted: true });
  expect(told).toEqual(["away", "awake"]);
});

test("what the network is said to be is a reason to ask, whichever way", () => {
  const { window, told, tell, ignore } = page();
  tell(window, "offline");
  tell(window, "online");
  tell(window, "focus");
  ignore?.();
  tell(window, "online");
  expect(told).toEqual(["awake", "awake", "awake"]);
});

test("the core loads, and a client is made, where nothing of a browser or of Node is there", async () => {
  const missing = ["WebSocket", "TextEncoder", "TextDecoder", "performance", "crypto", "document"];
  const kept = missing.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
  for (const name of missing) {
    Object.defineProperty(globalThis, name, { value: undefined, configurable: true });
  }
  try {
    const client = new Client("ws://nowhere", { encoding: JSON_CODEC });
    client.connect();
    await new Promise((resolve) => setImmediate(resolve));
    expect(client.error?.code).toBe("unsupported");
    expect(client.error?.message).toContain("WebSocket");
  } finally {
    for (const [name, descriptor] of kept) {
      if (descriptor) {
        Object.defineProperty(globalThis, name, descriptor);
      } else {
        Reflect.deleteProperty(globalThis, name);
      }
    }
  }
});

test("where msgpack cannot be loaded a client speaks JSON, unless it was told not to", async () => {
  vi.resetModules();
  vi.doMock("@msgpack/msgpack", () => {
    throw new ReferenceError("TextEncoder is not defined");
  });
  try {
    const fresh = await import("../src/index.js");
    const asked: string[][] = [];
    const environment = {
      ...fresh.systemEnvironment(),
      socket: (_: string, subprotocols: string[]): never => {
        asked.push(subprotocols);
        throw new fresh.MidstreamError("unsupported", "that is all that was to be seen");
      },
    };
    const client = new fresh.Client("ws://nowhere", { environment });
    client.connect();
    await vi.waitUntil(() => client.error);
    const strict = new fresh.Client("ws://nowhere", { environment, encoding: "msgpack" });
    strict.connect();
    await vi.waitUntil(() => strict.error);
    expect(asked).toEqual([["midstream.v1.json"]]);
    expect(strict.error?.message).toContain("No msgpack here");
  } finally {
    vi.doUnmock("@msgpack/msgpack");
    vi.resetModules();
  }
});
