/** The one class of errors: what a server refused, and what a client itself has to say (SPEC 11.1). */

/** What an error may say beside its text. */
export type Details = { readonly [name: string]: unknown };

/**
 * Something was refused, or could not be done. `code` is stable and for programs: those of SPEC 11.1, and
 * the client's own (`connection_lost`, `timed_out`, `session_closed`, ...). `message` is for people.
 */
export class MidstreamError extends Error {
  /** Whether the same call may succeed later as it is. */
  readonly retryable: boolean;

  constructor(
    readonly code: string,
    message: string,
    readonly details: Details = {},
    retryable = false,
  ) {
    super(message);
    this.name = "MidstreamError";
    this.retryable = retryable;
  }
}

/** The form of something is wrong; `field` is the path to it. */
export const invalid = (field: string, problem: string): MidstreamError =>
  new MidstreamError("invalid", `${field || "The value"} ${problem}.`, { field });

/** What came is no frame at all. */
export const malformed = (problem: string): MidstreamError =>
  new MidstreamError("malformed", `No frame: ${problem}.`);

/** A limit of SPEC 11.2 was passed. */
export const limitExceeded = (limit: string, maximum: number, actual: number): MidstreamError =>
  new MidstreamError("limit_exceeded", `${actual} is above the limit ${limit}, ${maximum}.`, {
    limit,
    maximum,
    actual,
  });
