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

const decoding =
  <T extends Payload>(read: (data: T) => unknown, isMine: (data: Payload) => data is T) =>
  (data: Payload): unknown => {
    if (!isMine(data)) {
      throw malformed("it came as the other kind of WebSocket message");
    }
    try {
      return read(data);
    } catch (error) {
      throw malformed(error instanceof Error ? error.message : String(error));
    }
  };

const isText = (data: Payload): data is string => typeof data === "string";
const isBytes = (data: Payload): data is Uint8Array => typeof data !== "string";

/** Frames as JSON, in text messages. */
export const JSON_CODEC: Codec = {
  name: "json",
  subprotocol: "midstream.v1.json",
  encode: (value) => JSON.stringify(value),
  decode: decoding((data: string): unknown => JSON.parse(data), isText),
};

/**
 * Load the codec for msgpack. It needs TextEncoder and TextDecoder, which some engines lack: so it is not
 * loaded with this module.
 *
 * @throws MidstreamError `unsupported`: this engine cannot.
 */
export async function loadMsgpack(): Promise<Codec> {
  try {
    const { decode, encode } = await import("@msgpack/msgpack");
    return {
      name: "msgpack",
      subprotocol: "midstream.v1.msgpack",
      encode: (value) => encode(value, { ignoreUndefined: true }),
      decode: decoding((data: Uint8Array): unknown => decode(data), isBytes),
    };
  } catch (error) {
    throw new MidstreamError("unsupported", `msgpack cannot be used here: ${error}. Use encoding: "json".`);
  }
}
