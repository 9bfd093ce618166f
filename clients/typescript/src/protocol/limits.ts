/** What a server takes (SPEC 11.2), as far as a client goes by it. */

export const PROTOCOL_VERSION = 1;

/** The limits that a client keeps to by itself are named; the server tells all of its own in `welcome`. */
export interface Limits {
  readonly [name: string]: number;
  readonly frame_bytes: number;
  readonly chunk_bytes: number;
  readonly calls_in_flight: number;
  readonly page_messages: number;
}

export const DEFAULT_LIMITS: Limits = {
  frame_bytes: 1_048_576,
  chunk_bytes: 65_536,
  calls_in_flight: 64,
  page_messages: 200,
};
