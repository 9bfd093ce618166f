/**
 * What is asked of the server now and then, and needs a connection anyway (SPEC 7). Loaded when it is first
 * needed. Nothing here is imported that the client itself imports, so that it is a small file of its own.
 */
import type { Page, Params, PendingInteraction, PromptParams, Summary } from "../protocol/calls.js";
import type { Replica } from "../protocol/merge.js";
import type { SessionInfo, ValueMap } from "../protocol/model.js";
import type { Exchange } from "./exchange.js";
import type { Owner } from "./owner.js";
import type { Prompts } from "./prompts.js";
import type { Keeper } from "./store.js";

/** What a request may use of a session. */
export interface Scope {
  readonly replica: Replica;
  readonly exchange: Exchange;
  /** Wait until the replica is live. @throws MidstreamError what stands against that */
  ready(): Promise<void>;
  /** An answer shows this version: a replica that is below it has missed something. */
  shown(answer: { readonly epoch: string; readonly version: number }): void;
  /** @throws MidstreamError `incompatible_server` */
  fail(problem: string): never;
}

/** How often what does not fit is read again before the server is held to be at fault. */
const REREADS = 20;

export interface ForkOptions {
  /** The last message to copy; else all are. */
  readonly messageId?: string;
  readonly sessionId?: string;
  readonly title?: string;
}

export type Requests = typeof import("./requests.js");
/** What it promises. */
export type Made<N extends keyof Requests> = Promise<Awaited<ReturnType<Requests[N]>>>;
/** What a request is given beside its scope. */
export type Given<N extends keyof Requests> = Requests[N] extends (scope: Scope, ...given: infer G) => unknown
  ? G
  : never;

/** Extend the window downwards by up to `limit` messages; false where there are none. */
export async function loadEarlier(scope: Scope, limit: number, onLoaded: () => void): Promise<boolean> {
  const { replica, exchange } = scope;
  for (let left = REREADS; left; left--) {
    await scope.ready();
    if (!replica.hasMore) {
      return false;
    }
    const params = {
      session_id: replica.sessionId,
      limit: Math.min(limit, exchange.limits.page_messages),
      before_sequence: replica.fromSequence,
      include_internal: replica.includeInternal,
    };
    // merged where the answer stands in the stream: there the replica is at the version that it shows, but
    // for a sync in between, after which it is read again
    const isLoaded = await exchange.ask("messages", params, "repeatable", (page) => {
      const isApplied = replica.mergePage(page) === "applied";
      scope.shown(page);
      if (isApplied) {
        onLoaded();
      }
      return isApplied && page.items.length > 0;
    });
    if (isLoaded) {
      return true;
    }
  }
  return scope.fail("No page of earlier messages fits the replica.");
}

/** Read a page of one segment; the replica stays as it is. */
export function segment(
  { replica, exchange }: Scope,
  before_sequence: number | undefined,
  limit: number,
): Promise<Page> {
  const { sessionId: session_id, includeInternal: include_internal } = replica;
  return exchange.ask(
    "messages",
    { session_id, limit, before_sequence, include_internal, segment: true },
    "repeatable",
  );
}

/** Store a summary of all messages up to a sequence. */
export async function compact(
  { replica, exchange }: Scope,
  through_sequence: number,
  summary: string,
): Promise<Summary> {
  const params = { session_id: replica.sessionId, through_sequence, summary };
  return (await exchange.ask("compact", params, "repeatable")).summary;
}

export async function interactions({ replica, exchange }: Scope): Promise<readonly PendingInteraction[]> {
  return (await exchange.ask("interactions", { session_id: replica.sessionId }, "repeatable")).items;
}

/** Copy the session, and return the copy's id; the same `key` gives the same copy. */
export async function fork({ replica, exchange }: Scope, key: string, options: ForkOptions): Promise<string> {
  const { messageId: message_id, sessionId: new_session_id, title } = options;
  const params = { session_id: replica.sessionId, message_id, new_session_id, key, title };
  return (await exchange.ask("sessions.fork", params, "repeatable")).session.session_id;
}

type Change = "sessions.update" | "sessions.clear" | "sessions.archive" | "sessions.approval_mode";

/** Change the session's own state. Not repeated: it would undo what somebody else did in between. */
export async function change<M extends Change>(
  { replica, exchange }: Scope,
  method: M,
  params: Omit<Params<M>, "session_id">,
): Promise<SessionInfo> {
  const whole = { session_id: replica.sessionId, ...params } as unknown as Params<M>;
  return (await exchange.ask(method, whole, "once")).session;
}

/** Make a call that gives nothing back; never repeated. */
export async function tell<M extends "signal" | "sessions.delete">(
  { replica, exchange }: Scope,
  method: M,
  params: Omit<Params<M>, "session_id">,
): Promise<void> {
  await exchange.ask(method, { session_id: replica.sessionId, ...params } as unknown as Params<M>, "once");
}

/** What a session has that gets another id. */
export interface Renaming {
  readonly sessionId: string;
  readonly owner: Owner;
  readonly prompts: Prompts;
  /** Who keeps it under the old id. */
  readonly keeper: Keeper | undefined;
  /** Show what is kept under the new id, and go on. */
  restore(): Promise<void>;
  keep(prompt: PromptParams): Promise<void> | undefined;
  close(reason: string): void;
}

/** The server gave the session an id: what is kept here goes with it. Nothing of it was sent yet. */
export async function rename({ replica }: Scope, given: Renaming): Promise<void> {
  const { sessionId, owner, prompts, keeper } = given;
  if (!owner.claim(sessionId)) {
    given.close(`it is open as ${sessionId}`);
    return;
  }
  replica.sessionId = sessionId;
  replica.epoch = replica.session = undefined;
  const moved = prompts.waiting.map((prompt) => ({ ...prompt, session_id: sessionId }));
  for (const prompt of moved) {
    const progress = prompts.progress(prompt.message_id);
    if (progress) {
      progress.prompt = prompt;
    }
  }
  prompts.waiting = moved;
  await given.restore();
  for (const prompt of moved) {
    void given.keep(prompt);
  }
  keeper?.forget(moved);
}

/** Create a session. The same `key` with the same content gives the same session. */
export async function create(
  exchange: Exchange,
  key: string,
  options: { readonly sessionId?: string; readonly title?: string; readonly metadata?: ValueMap },
): Promise<SessionInfo> {
  const params = { session_id: options.sessionId, key, title: options.title, metadata: options.metadata };
  return (await exchange.ask("sessions.create", params, "repeatable")).session;
}

/** Return up to `limit` sessions, the last changed first; `archived` gives those instead. */
export async function list(exchange: Exchange, limit: number, archived: boolean): Promise<SessionInfo[]> {
  const found: SessionInfo[] = [];
  let after: string | undefined;
  do {
    const page = Math.min(limit - found.length, exchange.limits.page_messages);
    const result = await exchange.ask("sessions.list", { limit: page, after, archived }, "repeatable");
    found.push(...result.items);
    after = result.next_after;
  } while (after !== undefined && found.length < limit);
  return found;
}
