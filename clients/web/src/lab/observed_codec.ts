/** A codec that tells what frames it read: how the lab learns by which mode a sync came. */
import { type Codec, loadMsgpack } from "midstream-client";
import type { SyncMode } from "./incidents.js";

/** The mode of the sync that a frame holds: the answer to a `subscribe`, or a `sync` of a living subscription. */
function syncMode(frame: unknown): SyncMode | undefined {
  if (!Array.isArray(frame)) {
    return undefined;
  }
  const [tag, , content] = frame as readonly unknown[];
  const payload = tag === "result" ? field(content, "sync") : tag === "sync" ? content : undefined;
  const mode = field(payload, "mode");
  return mode === "replay" || mode === "catchup" || mode === "reset" ? mode : undefined;
}

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** msgpack, telling of each sync that was read. @throws MidstreamError `unsupported` */
export async function observedCodec(onSync: (mode: SyncMode) => void): Promise<Codec> {
  const codec = await loadMsgpack();
  return {
    ...codec,
    decode(data) {
      const frame = codec.decode(data);
      const mode = syncMode(frame);
      if (mode) {
        onSync(mode);
      }
      return frame;
    },
  };
}
