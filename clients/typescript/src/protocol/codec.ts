/** The two encodings of a frame, which mean the same (SPEC 3.1). */
import { MidstreamError, malformed } from "./errors.js";

/** What a WebSocket carries: bytes in msgpack, text in JSON. */
export type Payload = Uint8Array | string;

export interface Codec {
  readonly name: "msgpack" | "json";
  readonly subprotocol: string;
  encode(value: unknown): Payload;
  /** @throws MidstreamError `malformed` */
  decode(data: Payload): unknown;
}

function codec<T extends Payload>(
  name: Codec["name"],
  encode: (value: unknown) => T,
  decode: (data: T) => unknown,
): Codec {
  const kind = name === "json" ? "string" : "object";
  return {
    name,
    subprotocol: `midstream.v1.${name}`,
    encode,
    decode(data) {
      if (typeof data !== kind) {
        throw malformed("the other kind of message");
      }
      try {
        return decode(data as T);
      } catch (error) {
        throw malformed(String(error));
      }
    },
  };
}

/** Frames as JSON, in text messages. */
export const JSON_CODEC = codec("json", JSON.stringify, JSON.parse);

/**
 * Load the codec for msgpack. It needs TextEncoder and TextDecoder, which some engines lack: so it is not
 * loaded with this module.
 *
 * @throws MidstreamError `unsupported`: this engine cannot.
 */
export async function loadMsgpack(): Promise<Codec> {
  try {
    const { decode, encode } = await import("@msgpack/msgpack");
    return codec(
      "msgpack",
      (value) => encode(value, { ignoreUndefined: true }),
      (data: Uint8Array) => decode(data),
    );
  } catch (error) {
    throw new MidstreamError("unsupported", `No msgpack here (${error}): use encoding "json".`);
  }
}
