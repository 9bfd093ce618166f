/** What a session is made of: messages, parts, turns, and the session's own state (SPEC 2). */

/** Anything that both encodings carry. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };
/** A map with string keys. */
export type ValueMap = { readonly [key: string]: Value };
/** By the provider's name: what it wants back with the next request. */
export type ProviderMetadata = { readonly [provider: string]: ValueMap };

export type StreamState = "streaming" | "done";
export type ToolState = "input-streaming" | "ready" | "waiting-user" | "running" | "completed" | "failed";
export type ApprovalMode = "ask" | "always-allow";

/** What every part has. In input the server gives the ids and numbers that are absent. */
export interface PartBase {
  readonly part_id: string;
  readonly sequence: number;
  readonly step_id?: string;
}

/** Text of either role; `state` is there exactly in agent messages. */
export interface TextPart extends PartBase {
  readonly type: "text";
  readonly text: string;
  readonly state?: StreamState;
  readonly provider_metadata?: ProviderMetadata;
}

/** What the model thought on its way, as far as it says so. */
export interface ReasoningPart extends PartBase {
  readonly type: "reasoning";
  readonly text: string;
  readonly state: StreamState;
  readonly provider_metadata?: ProviderMetadata;
}

/** Something that the user's program adds for the model. */
export interface ContextPart extends PartBase {
  readonly type: "context";
  readonly tag: string;
  readonly context: string;
}

/** A file by its URL, which may be a data URL. */
export interface FilePart extends PartBase {
  readonly type: "file";
  readonly url: string;
  readonly media_type: string;
  readonly filename?: string;
  readonly provider_metadata?: ProviderMetadata;
}

/** Data for the user interface only, never for the model. */
export interface DataPart extends PartBase {
  readonly type: "data";
  readonly data_type: string;
  readonly data: Value;
  readonly data_id?: string;
}

/** What an answer rests on. */
export interface SourcePart extends PartBase {
  readonly type: "source";
  readonly source_type: "url" | "document";
  readonly source_id: string;
  readonly url?: string;
  readonly title?: string;
  readonly media_type?: string;
  readonly filename?: string;
  readonly provider_metadata?: ProviderMetadata;
}

/** One tool call, from the first character of its arguments to its outcome. */
export interface ToolPart extends PartBase {
  readonly type: "tool";
  readonly tool_call_id: string;
  readonly tool_name: string;
  readonly state: ToolState;
  /** The arguments as they were streamed. */
  readonly input_text?: string;
  readonly input?: Value;
  readonly output?: Value;
  /** Present exactly where `failed`. */
  readonly error?: string;
  readonly title?: string;
  readonly tool_metadata?: ValueMap;
  readonly dynamic?: boolean;
  /** Arguments that could not be parsed. */
  readonly raw_input?: string;
  /** The output will be replaced. */
  readonly preliminary?: boolean;
  readonly call_provider_metadata?: ProviderMetadata;
  readonly result_provider_metadata?: ProviderMetadata;
  readonly provider_executed?: boolean;
}

export interface QuestionOption {
  readonly value: string;
  readonly label?: string;
  readonly description?: string;
}

/** One question. Without `options` any string answers it; with `multiple` a list of strings. */
export interface Question {
  readonly question_id: string;
  readonly question: string;
  readonly options?: readonly QuestionOption[];
  readonly multiple?: boolean;
}

/** What is asked; `expires_at` is in ms since the epoch. */
export interface InteractionRequest {
  readonly title: string;
  readonly description?: string;
  readonly questions?: readonly Question[];
  readonly expires_at?: number;
}

export interface ApprovalResponse {
  readonly kind: "approval";
  readonly decision: "approved" | "denied";
  readonly reason?: string | undefined;
}

export interface QuestionAnswer {
  readonly question_id: string;
  readonly value: string | readonly string[];
}

export interface QuestionResponse {
  readonly kind: "question";
  readonly answers: readonly QuestionAnswer[];
}

export type InteractionResponse = ApprovalResponse | QuestionResponse;

/** A question to a person: an approval, or a set of questions (SPEC 8.6). */
export interface InteractionPart extends PartBase {
  readonly type: "interaction";
  readonly interaction_id: string;
  readonly interaction_type: "approval" | "question";
  readonly status: "pending" | "resolved" | "expired" | "cancelled";
  readonly request: InteractionRequest;
  readonly response?: InteractionResponse;
  readonly resolved_at?: number;
  readonly resolved_by?: string;
  readonly cancel_reason?: "turn_stopped" | "session_disposed" | "runtime_interrupted" | "withdrawn";
  readonly tool_call_id?: string;
  /** Nobody was asked: the session's mode gave the approval. */
  readonly approval_mode?: "always-allow";
}

/** Something that the agent or the server did, for people to see. */
export interface ActionPart extends PartBase {
  readonly type: "action";
  readonly action_id: string;
  readonly action_type: string;
  readonly state: "running" | "completed" | "failed";
  readonly title: string;
  readonly description?: string;
  readonly data?: ValueMap;
}

/** A failure that is kept in the conversation. */
export interface ErrorPart extends PartBase {
  readonly type: "error";
  readonly scope: "session" | "turn";
  readonly code: string;
  readonly message: string;
  readonly recoverable: boolean;
}

/** A step boundary that the agent wants seen. */
export interface StepStartPart extends PartBase {
  readonly type: "step-start";
}

export type Part =
  | TextPart
  | ReasoningPart
  | ContextPart
  | FilePart
  | DataPart
  | SourcePart
  | ToolPart
  | InteractionPart
  | ActionPart
  | ErrorPart
  | StepStartPart;

type Given<P extends Part> = Omit<P, "part_id" | "sequence" | "step_id" | "state"> & {
  readonly part_id?: string;
};
/** The parts that a prompt may have. */
export type UserPart = Given<TextPart> | Given<ContextPart> | Given<FilePart> | Given<DataPart>;

/** Where a forked message came from. */
export interface Origin {
  readonly session_id: string;
  readonly message_id: string;
  readonly turn_id?: string;
}

/** One message. Times are ms since the epoch by the server's clock; `state` is the agent's only. */
export interface Message {
  readonly message_id: string;
  readonly session_id: string;
  readonly turn_id?: string;
  readonly sequence: number;
  readonly revision: number;
  readonly role: "user" | "agent";
  readonly visibility: "visible" | "internal";
  readonly created_at: number;
  readonly updated_at: number;
  readonly origin?: Origin;
  readonly state?: StreamState;
  readonly parts: readonly Part[];
}

/** Why a turn failed. */
export interface TurnFailure {
  readonly code: string;
  readonly message: string;
}

/** One run of the agent, from the input that started it to its end. */
export interface Turn {
  readonly turn_id: string;
  readonly revision: number;
  readonly state: "running" | "completed" | "failed" | "stopped";
  readonly phase: "starting" | "waiting-model" | "streaming" | "running-tool" | "waiting-user";
  readonly phase_since: number;
  readonly started_at: number;
  readonly finished_at?: number;
  readonly error?: TurnFailure;
}

/** The session's own state. What is absent has its usual value: an empty queue, nothing pending, the mode `ask`. */
export interface SessionInfo {
  readonly session_id: string;
  readonly revision: number;
  readonly title?: string;
  readonly metadata?: ValueMap;
  readonly created_at: number;
  readonly updated_at: number;
  readonly archived_at?: number;
  /** Messages below it no longer exist. Absent: 1. */
  readonly first_sequence?: number;
  readonly message_count: number;
  readonly running_turn_id?: string;
  readonly queue?: readonly string[];
  readonly pending_interactions?: number;
  readonly approval_mode?: ApprovalMode;
  readonly approval_mode_by?: string;
  /** The last message that a summary covers. Absent: 0. */
  readonly summarized_through?: number;
}
