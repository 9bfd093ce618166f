/** What only a client can know: the link is gone, nobody answered (the codes are those of the Python client). */
import { type Details, MidstreamError } from "../protocol/errors.js";

const clientError = (code: string, message: string, details?: Details): MidstreamError =>
  new MidstreamError(code, message, details);

/** The connection went, and the call cannot be sent again by itself without harm. */
export const connectionLost = (method: string, sent: boolean): MidstreamError =>
  clientError(
    "connection_lost",
    sent
      ? `The connection was lost before ${method} was answered; it may have been done. Look, and then decide.`
      : `There is no connection, so ${method} was not sent. Repeat it when the session is live.`,
    { method, sent },
  );

/** What was waited for did not happen in time. */
export const timedOut = (what: string, ms: number, problem?: string): MidstreamError =>
  clientError(
    "timed_out",
    `${what} did not happen within ${ms} ms.${problem ? ` Last problem: ${problem}.` : ""} The client goes on trying.`,
    { ms, problem },
  );

/** The session is closed for this client; `details.reason` says why. */
export const sessionClosed = (id: string, reason: string): MidstreamError =>
  clientError("session_closed", `Session ${id} is closed here (${reason}). Ask the client for it again.`, { id, reason });

export const clientClosed = (): MidstreamError =>
  clientError("client_closed", "The client is closed. Make a new Client to connect again.");

/** Too many prompts wait for the connection; this one was not taken. */
export const outboxFull = (id: string, limit: number): MidstreamError =>
  clientError("outbox_full", `${limit} prompts of session ${id} wait to be sent, which is the limit.`, { id, limit });

/** What answers at the URL does not speak this protocol, or not this version of it. */
export const incompatibleServer = (problem: string): MidstreamError =>
  clientError("incompatible_server", `${problem} Check the URL and the server's version.`);

/** The server closed the connection with a code that says not to come back (4500 to 4999). */
export const connectionRejected = (close_code: number, reason: string): MidstreamError =>
  clientError("connection_rejected", `The server closed the connection for good (${close_code} ${reason}).`, {
    close_code,
    reason,
  });

/** The prompt was cancelled before a turn took it. */
export const inputCancelled = (id: string): MidstreamError =>
  clientError("input_cancelled", `Prompt ${id} was cancelled before a turn took it.`, { id });

/** A fault of the client itself, which ends it. */
export const clientFailed = (cause: unknown): MidstreamError => {
  const error = clientError("client", `The client failed and is closed: ${cause}. Please report it.`);
  error.cause = cause;
  return error;
};
