/** A session as an application holds it: the replica, what changes, and what can be asked for (SPEC 7). */
import type { CancelQueue, Delivery, Method, Params, PendingInteraction, PromptParams, PromptResult, ResultOf, StopResult } from "../protocol/calls.js";
import { MidstreamError } from "../protocol/errors.js";
import type { Signal } from "../protocol/frames.js";
import { DEFAULT_LIMITS } from "../protocol/limits.js";
import type { Replica } from "../protocol/merge.js";
import type { ApprovalMode, InteractionPart, InteractionResponse, Message, SessionInfo, Turn, UserPart, Value, ValueMap } from "../protocol/model.js";
import { problemIn } from "../protocol/values.js";
import { sessionClosed } from "./errors.js";
import { History, type VerifyReport } from "./history.js";
import type { Mutation } from "./mutations.js";
import { Prompts } from "./prompts.js";
import { Fanout, type Stream } from "./streams.js";
import type { SessionState, Subscription, SubscriptionUser, Tools } from "./subscription.js";
import { TurnHandle, type TurnOwner } from "./turns.js";
import type { Keeper } from "./store.js";

/** What a session asks of its client. */
export interface Owner {
  session(sessionId: string, options: { includeInternal: boolean }): Promise<Session>;
  forget(session: Session): void;
  newId(kind: string): string;
  readonly outboxLimit: number;
}

const NO_QUEUE: readonly string[] = [];
/** How long the store may take before the session goes on without what it has. */
const STORE_MS = 2000;
/** How long after a change the replica is stored. */
const SAVE_MS = 1000;

/**
 * One conversation, kept equal to the server's. Get it from `Client.open` or `Client.session`; all who ask
 * share it. What is read here is the replica: it is never torn, and while the session is not `live` it is
 * what was known last. What did not change stays the same object.
 */
export class Session implements TurnOwner, SubscriptionUser {
  readonly #subscription: Subscription;
  readonly #tools: Tools;
  readonly #keeper: Keeper;
  readonly #owner: Owner;
  readonly sessionId: string;
  /** Resolves when what the store had of the session is shown. */
  readonly restored: Promise<void>;
  readonly #signalled = new Fanout<Signal>();
  readonly #prompts: Prompts;
  readonly #history: History;
  readonly #law: Replica;
  #saving: (() => void) | undefined;

  constructor(
    subscription: Subscription,
    tools: Tools,
    keeper: Keeper,
    owner: Owner,
  ) {
    this.#subscription = subscription;
    this.#tools = tools;
    this.#keeper = keeper;
    this.#owner = owner;
    const { replica } = subscription;
    this.#law = replica.law;
    this.sessionId = this.#law.sessionId;
    const { exchange } = tools;
    const later = (ms: number, callback: () => void) => tools.timers.later(ms, callback);
    const notify = () => subscription.changed.notify();
    this.#prompts = new Prompts(this.#law, exchange, keeper, later, notify, owner.outboxLimit);
    this.#history = new History(replica, exchange, () => this.untilLive(exchange.timeoutMs), notify);
    subscription.user = this;
    this.restored = this.#restore();
  }

  /** `connecting`, `syncing`, `live`, `offline` or `closed`. */
  get state(): SessionState {
    return this.#subscription.state;
  }

  /** Why the session is closed, where this client did not close it. */
  get error(): MidstreamError | undefined {
    return this.#subscription.error;
  }

  /** What last ended the connection or an attempt, in words; undefined while there is a connection. */
  get problem(): string | undefined {
    return this.#tools.exchange.problem;
  }

  get includeInternal(): boolean {
    return this.#law.includeInternal;
  }

  /** The messages of the window, whole, ascending: the same list until something changes. */
  get messages(): readonly Message[] {
    return this.#law.messages();
  }

  /** Whether there are messages before the first of `messages`; see `loadEarlier`. */
  get hasEarlier(): boolean {
    return this.#law.hasMore;
  }

  /** The session's own state: title, metadata, counts; undefined before anything was known of it. */
  get info(): SessionInfo | undefined {
    return this.#law.session;
  }

  /** The turn that runs now. */
  get turn(): Turn | undefined {
    return this.#law.runningTurn;
  }

  /** The known turns by id: those of the messages, and the newest 32. */
  get turns(): ReadonlyMap<string, Turn> {
    return this.#law.turns;
  }

  /** The ids of accepted input that is not in a message yet, in order. */
  get queue(): readonly string[] {
    return this.info?.queue ?? NO_QUEUE;
  }

  /** The prompts that the server has not accepted yet, in order: written offline, or on their way. */
  get pending(): readonly PromptParams[] {
    return this.#prompts.waiting;
  }

  /** The version of the session that the replica shows. */
  get version(): number {
    return this.#law.version;
  }

  /** How far the replica has come; undefined before the first sync. */
  get cursor() {
    return this.#law.cursor();
  }

  /** Call back after each change of anything that is read here; the returned function ends that. */
  subscribe(listener: () => void): () => void {
    return this.#subscription.changed.listen(listener);
  }

  /**
   * All that changes from now on, to read with `for await`. At most `limit` mutations wait: a slower reader
   * gets one of variant `reset` in their place, and reads `messages` again; so after a sync that replaced
   * the replica, and after a clear. It ends when the session closes, with its error if any.
   */
  mutations(limit?: number): Stream<Mutation> {
    return this.#subscription.replica.mutations(limit);
  }

  /** The states from now on; a slow reader misses the oldest. */
  states(): Stream<SessionState> {
    return this.#subscription.states.reader();
  }

  /** The signals (typing, presence) from now on; a slow reader misses the oldest. */
  signals(): Stream<Signal> {
    return this.#signalled.reader();
  }

  /**
   * Give the agent input. It is kept here, and in the client's store, until the server has it; then this
   * resolves, or sooner: it does not wait for a connection. Prompts are sent in order, each under its
   * `messageId`, as often as needed; the server takes it once. `handle.accepted()` tells when it is on the
   * server's disk.
   *
   * @throws MidstreamError `outbox_full`, `invalid`, `idempotency_conflict`, or the session is closed.
   */
  async prompt(
    content: string | readonly UserPart[],
    options: { readonly messageId?: string; readonly delivery?: Delivery } = {},
  ): Promise<TurnHandle> {
    const parts: readonly UserPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const { messageId = this.#owner.newId("msg"), delivery = "auto" } = options;
    const prompt = { session_id: this.sessionId, message_id: messageId, parts, delivery };
    const problem = problemIn(prompt, DEFAULT_LIMITS.nesting - 1);
    if (problem) {
      throw problem;
    }
    await this.restored; // what was written before a reload goes first
    this.#checkOpen();
    const progress = this.#prompts.add(prompt);
    const kept = this.#keeper.keepPrompt(prompt, this.#tools.environment.wallMs());
    this.#prompts.pump();
    await kept;
    return new TurnHandle(progress, this);
  }

  /** The handle of a prompt that is followed: one of `pending`, say, that was written before a reload. */
  handle(messageId: string): TurnHandle | undefined {
    const progress = this.#prompts.progress(messageId);
    return progress && new TurnHandle(progress, this);
  }

  /**
   * Stop a turn, and with it queued input: one's own, all, or none. A turn that is over stays as it is.
   * Without a connection, `current` means the turn that the replica shows: a late stop must not hit another.
   */
  stop(turnId = "current", cancelQueue: CancelQueue = "own"): Promise<StopResult> {
    const turn_id = turnId === "current" && this.state !== "live" ? (this.turn?.turn_id ?? turnId) : turnId;
    return this.#ask("stop", { turn_id, cancel_queue: cancelQueue }, turn_id !== "current");
  }

  /** Take a queued prompt back, and return where it is now: one that a turn has stays there. */
  async cancelInput(message_id: string): Promise<PromptResult> {
    return this.#prompts.withdraw(message_id) ?? this.#ask("cancel_input", { message_id }, true);
  }

  /** What waits for a person's answer, in order of appearance. */
  async interactions(): Promise<readonly PendingInteraction[]> {
    return (await this.#ask("interactions", {}, true)).items;
  }

  /** Answer an interaction; the first answer wins. @throws MidstreamError `interaction_closed`, `invalid` */
  async respond(interaction_id: string, response: InteractionResponse): Promise<InteractionPart> {
    return (await this.#ask("respond", { interaction_id, response }, true)).interaction;
  }

  approve(interactionId: string, reason?: string): Promise<InteractionPart> {
    return this.#decide(interactionId, "approved", reason);
  }

  deny(interactionId: string, reason?: string): Promise<InteractionPart> {
    return this.#decide(interactionId, "denied", reason);
  }

  /** Answer all questions of an interaction: a value, or a list of values, by question id. */
  answer(
    interactionId: string,
    answers: { readonly [questionId: string]: string | readonly string[] },
  ): Promise<InteractionPart> {
    const given = Object.entries(answers).map(([question_id, value]) => ({ question_id, value }));
    return this.respond(interactionId, { kind: "question", answers: given });
  }

  /** Extend `messages` backwards by up to `limit` (1 to 200); false where there were none. */
  loadEarlier(limit = 50): Promise<boolean> {
    return this.#history.loadEarlier(limit);
  }

  /** Compare the replica with the server by digests, each page of 200 at one and the same version. */
  verify(): Promise<VerifyReport> {
    return this.#history.verify();
  }

  /** Copy the session up to and with a message, or as a whole, and return the copy, synced. */
  async fork(
    options: { readonly messageId?: string; readonly sessionId?: string; readonly title?: string } = {},
  ): Promise<Session> {
    const { messageId: message_id, sessionId: new_session_id, title } = options;
    const params = { message_id, new_session_id, key: this.#owner.newId("key"), title };
    const made = await this.#ask("sessions.fork", params, true);
    return this.#owner.session(made.session.session_id, { includeInternal: this.includeInternal });
  }

  /** Replace the title (null removes it), the metadata, or both. */
  update(changes: { readonly title?: string | null; readonly metadata?: ValueMap }): Promise<SessionInfo> {
    return this.#change("sessions.update", changes);
  }

  /** Remove all messages. Refused while a turn runs. */
  clear(): Promise<SessionInfo> {
    return this.#change("sessions.clear", {});
  }

  /** Archive the session, or take it back. Refused while a turn runs. */
  archive(archived = true): Promise<SessionInfo> {
    return this.#change("sessions.archive", { archived });
  }

  /** Let approvals be asked for (`ask`), or be given at once (`always-allow`), waiting ones too. */
  setApprovalMode(approval_mode: ApprovalMode): Promise<SessionInfo> {
    return this.#change("sessions.approval_mode", { approval_mode });
  }

  /** Delete the session for everybody, for good; it closes here too. */
  async delete(): Promise<void> {
    await this.#ask("sessions.delete", {}, false);
    this.#subscription.close(sessionClosed(this.sessionId, "deleted"));
  }

  /** Tell the session's other readers something that is not kept; never repeated. */
  async signal(name: string, data: Value = null): Promise<void> {
    await this.#ask("signal", { name, data }, false);
  }

  /** Stop following the session, for all who share this object. It goes on at the server. */
  close(): void {
    this.save();
    this.#subscription.close();
  }

  /** Wait until `condition()` is true; it is asked now, and after each change. */
  until(condition: () => unknown, timeoutMs?: number): Promise<void> {
    return this.#wait(condition, "What was waited for", timeoutMs);
  }

  /** Wait until the replica is equal to the server. */
  untilLive(timeoutMs?: number): Promise<void> {
    return this.#wait(() => this.state === "live", `The sync of session ${this.sessionId}`, timeoutMs);
  }

  /** Store the replica now: the program may end at any moment. */
  save(): void {
    this.#saving?.();
    this.#saving = undefined;
    if (this.#law.stage === "live") {
      void this.#keeper.keepReplica((most) => this.#law.save(most));
    }
  }

  onNews(synced: boolean): void {
    this.#prompts.settle(this.state === "live", synced);
    this.#saving ??= this.#tools.timers.later(SAVE_MS, () => this.save());
  }

  onSignal(signal: Signal): void {
    this.#signalled.publish(signal);
  }

  onClosed(error: MidstreamError | undefined): void {
    this.#saving?.();
    const isGone = error?.code === "not_found" || ["deleted", "forbidden"].includes(String(error?.details.reason));
    if (isGone) {
      this.#keeper.forget(this.pending);
    }
    this.#prompts.close(error ?? sessionClosed(this.sessionId, "closed by this client"));
    this.#signalled.end(error);
    this.#owner.forget(this);
  }

  /** Show what the store has of the session, then let it be brought up to date. */
  async #restore(): Promise<void> {
    const { timers } = this.#tools;
    let cancel: (() => void) | undefined;
    const late = new Promise<undefined>((resolve) => {
      cancel = timers.later(STORE_MS, () => resolve(undefined));
    });
    const kept = await Promise.race([this.#keeper.load(), late]);
    cancel?.();
    if (this.state === "closed") {
      return;
    }
    timers.run(() => {
      if (kept?.replica) {
        this.#law.restore(kept.replica);
      }
      for (const prompt of kept?.prompts ?? []) {
        this.#prompts.add(prompt);
      }
      this.#subscription.ready();
      this.#prompts.pump();
    });
  }

  #decide(id: string, decision: "approved" | "denied", reason?: string): Promise<InteractionPart> {
    return this.respond(id, { kind: "approval", decision, ...(reason === undefined ? {} : { reason }) });
  }

  // not repeated: it would undo what somebody else did in between
  async #change<M extends "sessions.update" | "sessions.clear" | "sessions.archive" | "sessions.approval_mode">(
    method: M,
    params: Omit<Params<M>, "session_id">,
  ): Promise<SessionInfo> {
    return (await this.#ask(method, params, false)).session;
  }

  async #ask<M extends Method>(
    method: M,
    params: Omit<Params<M>, "session_id">,
    isRepeatable: boolean,
  ): Promise<ResultOf<M>> {
    this.#checkOpen();
    const whole = { session_id: this.sessionId, ...params } as unknown as Params<M>;
    return this.#tools.exchange.ask(method, whole, isRepeatable);
  }

  #wait(condition: () => unknown, what: string, timeoutMs: number | undefined): Promise<void> {
    const look = () => {
      if (condition()) {
        return true;
      }
      this.#checkOpen();
      return undefined;
    };
    const wait = { what, timeoutMs, problem: () => this.problem };
    return this.#subscription.changed.until(look, wait).then(() => undefined);
  }

  #checkOpen(): void {
    if (this.state === "closed") {
      throw this.error ?? sessionClosed(this.sessionId, "closed by this client");
    }
  }
}
