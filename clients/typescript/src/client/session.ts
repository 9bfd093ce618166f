/** A session as an application holds it: the replica, what changes, and what can be asked for (SPEC 7). */
import type {
  CancelQueue,
  Delivery,
  Method,
  Page,
  Params,
  PendingInteraction,
  PromptParams,
  PromptResult,
  ResultOf,
  StopResult,
  Summary,
} from "../protocol/calls.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { Signal } from "../protocol/frames.js";
import type {
  ApprovalMode,
  InteractionPart,
  InteractionResponse,
  SessionInfo,
  UserPart,
  Value,
  ValueMap,
} from "../protocol/model.js";
import { problemIn } from "../protocol/values.js";
import { incompatibleServer, sessionClosed } from "./errors.js";
import type { CallKind } from "./exchange.js";
import type { Owner, SessionNews } from "./owner.js";
import { Prompts } from "./prompts.js";
import type { ForkOptions, Given, Made, Renaming, Requests, Scope } from "./requests.js";
import type { Keeper } from "./store.js";
import type { SessionState, Subscription, Tools } from "./subscription.js";
import type { TurnHandle, TurnOwner } from "./turns.js";
import type { VerifyReport } from "./verify.js";
import { SessionView } from "./view.js";
import { Listeners } from "./waiting.js";

/** How long the store may take before the session goes on without what it has. */
const STORE_MS = 2000;
/** How long after a change the replica is stored. */
const SAVE_MS = 1000;

/**
 * One conversation, kept equal to the server's. Get it from `Client.open` or `Client.session`; all who ask
 * share it. What is read here is the replica: it is never torn, and while the session is not `live` it is
 * what was known last. What did not change stays the same object.
 */
export class Session extends SessionView implements TurnOwner {
  /** Resolves when what the store had of the session is shown. */
  readonly restored: Promise<void>;
  /** How often the client gave it out: whoever finds that nobody else asked may close it. */
  asked = 0;
  readonly #subscription: Subscription;
  readonly #tools: Tools;
  readonly #owner: Owner;
  readonly #prompts: Prompts;
  #keeper: Keeper | undefined;
  readonly #signals = new Listeners<Signal>();
  readonly #news = new Listeners<SessionNews>();
  #saving: (() => void) | undefined;

  constructor(subscription: Subscription, tools: Tools, owner: Owner) {
    const { replica, changed } = subscription;
    super(replica);
    this.#subscription = subscription;
    this.#tools = tools;
    this.#owner = owner;
    this.#prompts = new Prompts(replica, tools, this, {
      outboxLimit: owner.outboxLimit,
      drop: (messageId) => this.#keeper?.dropPrompt(messageId),
      onChange: () => changed.notify(),
    });
    subscription.user = {
      onNews: (synced) => this.#onNews(synced),
      onApplied: (news) => this.#news.notify(news),
      onSignalled: (signal) => this.#signals.notify(signal),
      onNamed: (sessionId) => this.#onNamed(sessionId),
      onClosed: (error) => this.#onClosed(error),
    };
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

  /**
   * The prompts that the server has not accepted yet, in order: written offline, or on their way. None of them
   * is in `messages` or `queue`: the change that shows an input comes before the answer to its prompt.
   */
  get pending(): readonly PromptParams[] {
    const { waiting } = this.#prompts;
    const id = waiting[0]?.message_id ?? "";
    return this.message(id) || this.queue.includes(id) ? waiting.slice(1) : waiting;
  }

  /** Call back after each change of anything that is read here; the returned function ends that. */
  subscribe(listener: () => void): () => void {
    return this.#subscription.changed.listen(listener);
  }

  /** Call back after each frame that changed something; `mutations` tells what it was. */
  onChanges(listener: (news: SessionNews) => void): () => void {
    return this.#news.listen(listener);
  }

  /** Call back with each signal (typing, presence). */
  onSignal(listener: (signal: Signal) => void): () => void {
    return this.#signals.listen(listener);
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
    const parts: readonly UserPart[] =
      typeof content === "string" ? [{ type: "text", text: content }] : content;
    const { messageId: message_id = this.#tools.newId("msg"), delivery = "auto" } = options;
    const given = { message_id, parts, delivery };
    const problem = problemIn(given);
    if (problem) {
      throw problem;
    }
    await this.restored; // what was written before a reload goes first
    this.#checkOpen();
    const prompt = { session_id: this.sessionId, ...given };
    const progress = this.#prompts.add(prompt);
    const kept = this.#keep(prompt);
    this.#prompts.pump();
    await (kept && this.#inTime(kept));
    return progress;
  }

  /** The handle of a prompt that is followed: one of `pending`, say, that was written before a reload. */
  handle(messageId: string): TurnHandle | undefined {
    return this.#prompts.progress(messageId);
  }

  /**
   * Stop a turn, and with it queued input: one's own, all, or none. A turn that is over stays as it is.
   * Without a connection, `current` means the turn that the replica shows: a late stop must not hit another.
   */
  stop(turnId = "current", cancelQueue: CancelQueue = "own"): Promise<StopResult> {
    const turn_id = (turnId === "current" && this.state !== "live" && this.turn?.turn_id) || turnId;
    return this.#ask(
      "stop",
      { turn_id, cancel_queue: cancelQueue },
      turn_id === "current" ? "once" : "repeatable",
    );
  }

  /** Take a queued prompt back, and return where it is now: one that a turn has stays there. */
  async cancelInput(message_id: string): Promise<PromptResult> {
    return this.#prompts.withdraw(message_id) ?? this.#ask("cancel_input", { message_id }, "repeatable");
  }

  /** What waits for a person's answer, in order of appearance. */
  interactions(): Promise<readonly PendingInteraction[]> {
    return this.#request("interactions");
  }

  /** Answer an interaction; the first answer wins. @throws MidstreamError `interaction_closed`, `invalid` */
  async respond(interaction_id: string, response: InteractionResponse): Promise<InteractionPart> {
    return (await this.#ask("respond", { interaction_id, response }, "repeatable")).interaction;
  }

  approve(interactionId: string, reason?: string): Promise<InteractionPart> {
    return this.respond(interactionId, { kind: "approval", decision: "approved", reason });
  }

  deny(interactionId: string, reason?: string): Promise<InteractionPart> {
    return this.respond(interactionId, { kind: "approval", decision: "denied", reason });
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
    return this.#request("loadEarlier", limit, () => {
      this.#news.notify("loaded");
      this.#subscription.changed.notify();
    });
  }

  /** Compare the replica with the server by digests, each page of 200 at one and the same version. */
  async verify(): Promise<VerifyReport> {
    const { verify } = await import("./verify.js");
    return verify(this.#scope());
  }

  /** Store a summary of all messages up to `throughSequence`: the agent is then given that instead. They stay. */
  compact(throughSequence: number, summary: string): Promise<Summary> {
    return this.#request("compact", throughSequence, summary);
  }

  /** Read a page of one segment (SPEC 8.10): the active one, or the one below a sequence. `messages` stays as it is. */
  segment(beforeSequence?: number, limit = 50): Promise<Page> {
    return this.#request("segment", beforeSequence, limit);
  }

  /** Copy the session up to and with a message, or as a whole, and return the copy, synced. */
  async fork(options: ForkOptions = {}): Promise<Session> {
    return this.#owner.copy(await this.#request("fork", this.#tools.newId("key"), options));
  }

  /** Replace the title (null removes it), the metadata, or both. */
  update(changes: { readonly title?: string | null; readonly metadata?: ValueMap }): Promise<SessionInfo> {
    return this.#request("change", "sessions.update", changes);
  }

  /** Remove all messages. Refused while a turn runs. */
  clear(): Promise<SessionInfo> {
    return this.#request("change", "sessions.clear", {});
  }

  /** Archive the session, or take it back. Refused while a turn runs. */
  archive(archived = true): Promise<SessionInfo> {
    return this.#request("change", "sessions.archive", { archived });
  }

  /** Let approvals be asked for (`ask`), or be given at once (`always-allow`), waiting ones too. */
  setApprovalMode(approval_mode: ApprovalMode): Promise<SessionInfo> {
    return this.#request("change", "sessions.approval_mode", { approval_mode });
  }

  /** Delete the session for everybody, for good; it closes here too. */
  async delete(): Promise<void> {
    await this.#request("tell", "sessions.delete", {});
    this.#subscription.close(sessionClosed(this.sessionId, "deleted"));
  }

  /** Tell the session's other readers something that is not kept; never repeated. */
  signal(name: string, data: Value = null): Promise<void> {
    return this.#request("tell", "signal", { name, data });
  }

  /** Stop following the session, for all who share this object. It goes on at the server. */
  close(): void {
    this.save();
    this.#subscription.close();
  }

  /** Wait until `condition()` is true; it is asked now, and after each change. */
  until(condition: () => unknown, timeoutMs?: number): Promise<void> {
    return this.#wait(condition, "It", timeoutMs);
  }

  /** Wait until the replica is equal to the server. */
  untilLive(timeoutMs?: number): Promise<void> {
    return this.#wait(() => this.state === "live", "The sync", timeoutMs);
  }

  /** Store the replica now: the program may end at any moment. */
  save(): void {
    this.#saving?.();
    this.#saving = undefined;
    if (this.replica.stage === "live") {
      this.#keeper?.keepReplica(this.replica);
    }
  }

  #onNews(synced: boolean): void {
    this.#prompts.settle(this.state === "live", synced);
    if (this.#keeper) {
      this.#saving ??= this.#tools.timers.later(SAVE_MS, () => this.save());
    }
  }

  #onClosed(error: MidstreamError | undefined): void {
    this.#saving?.();
    if (error?.code === "not_found" || ["deleted", "forbidden"].includes(error?.details.reason as string)) {
      this.#keeper?.forget(this.#prompts.waiting);
    }
    this.#prompts.close(error ?? sessionClosed(this.sessionId));
    this.#news.notify("closed");
    this.#owner.onClosed();
  }

  #keep(prompt: PromptParams): Promise<void> | undefined {
    return this.#keeper?.keepPrompt(prompt, this.#tools.environment.wallMs());
  }

  #onNamed(sessionId: string): void {
    const given: Renaming = {
      sessionId,
      owner: this.#owner,
      prompts: this.#prompts,
      keeper: this.#keeper,
      restore: () => this.#restore(),
      keep: (prompt) => this.#keep(prompt),
      close: (reason) => this.#subscription.close(sessionClosed(this.sessionId, reason)),
    };
    this.#request("rename", given).catch(given.close);
  }

  /** Show what the store has of the session, then let it be brought up to date. */
  async #restore(): Promise<void> {
    this.#keeper = this.#owner.keeper(this.sessionId);
    const kept = this.#keeper && (await this.#inTime(this.#keeper.load()));
    this.#tools.timers.run(() => {
      if (this.state !== "closed") {
        if (kept?.replica) {
          this.replica.restore(kept.replica);
        }
        this.#prompts.restore(kept?.prompts ?? []);
        this.#subscription.ready();
        this.#prompts.pump();
      }
    });
  }

  /** Wait for the store, but not for one that hangs. */
  #inTime<T>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const cancel = this.#tools.timers.later(STORE_MS, () => resolve(undefined));
      void work.then(resolve).finally(cancel);
    });
  }

  /** Make a request that is seldom made, and needs a connection anyway: how is loaded then. */
  async #request<N extends keyof Requests>(name: N, ...given: Given<N>): Made<N> {
    this.#checkOpen();
    const requests = await import("./requests.js");
    const make = requests[name] as unknown as (scope: Scope, ...given: Given<N>) => Made<N>;
    return make(this.#scope(), ...given);
  }

  #scope(): Scope {
    const { exchange } = this.#tools;
    return {
      replica: this.replica,
      exchange,
      ready: () => this.untilLive(exchange.timeoutMs),
      shown: (answer) => this.#subscription.shown(answer),
      fail: (problem) => {
        throw incompatibleServer(problem);
      },
    };
  }

  async #ask<M extends Method>(
    method: M,
    params: Omit<Params<M>, "session_id">,
    kind: CallKind,
  ): Promise<ResultOf<M>> {
    this.#checkOpen();
    const whole = { session_id: this.sessionId, ...params } as unknown as Params<M>;
    return this.#tools.exchange.ask(method, whole, kind);
  }

  async #wait(condition: () => unknown, what: string, timeoutMs: number | undefined): Promise<void> {
    // a closed session throws: there is nothing to wait for any more
    const look = () => (condition() ? true : this.#checkOpen());
    await this.#subscription.changed.until(look, { what, timeoutMs, problem: () => this.problem });
  }

  #checkOpen(): undefined {
    if (this.state === "closed") {
      throw this.error ?? sessionClosed(this.sessionId);
    }
    return undefined;
  }
}
