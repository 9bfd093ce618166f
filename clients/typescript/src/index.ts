/** The client: a replica of each session, and the connection that keeps it equal to the server. */
export { Client, type ClientOptions, type SessionOptions } from "./client/client.js";
export {
  type Environment,
  type News,
  type Socket,
  type SocketMaker,
  systemEnvironment,
} from "./client/environment.js";
export { keepIn, memoryMap, type TextMap } from "./client/keeper.js";
export type { Encoding, LinkState } from "./client/link.js";
export { type Mutation, mutations, type Payload, type ResetReason } from "./client/mutations.js";
export type { SessionNews } from "./client/owner.js";
export { DEFAULT_POLICY, type Policy } from "./client/reconnect.js";
export type { Session } from "./client/session.js";
export type { Keeper, Kept, Store } from "./client/store.js";
export type { Stream } from "./client/streams.js";
export type { SessionState } from "./client/subscription.js";
export type { Refusal, Token } from "./client/tokens.js";
export type { HandleState, TurnHandle } from "./client/turns.js";
export type { Difference, VerifyReport } from "./client/verify.js";
export type {
  CancelQueue,
  Cursor,
  Delivery,
  Page,
  PendingInteraction,
  PromptParams,
  PromptResult,
  StopResult,
  Summary,
} from "./protocol/calls.js";
export { type Codec, JSON_CODEC, loadMsgpack } from "./protocol/codec.js";
export { canonical, messageDigest } from "./protocol/digest.js";
export { MidstreamError } from "./protocol/errors.js";
export type { Signal, WelcomeInfo } from "./protocol/frames.js";
export type { SavedReplica } from "./protocol/merge.js";
export type * from "./protocol/model.js";
