/** What only a client can know: the link is gone, nobody answered (the codes are those of the Python client). */
import { MidstreamError } from "../protocol/errors.js";

/** The connection went, and the call cannot be sent again by itself without harm. */
export const connectionLost = (method: string, sent: boolean): MidstreamError => {
  const text = `Without a connection ${method} was not ${sent ? "answered: look whether it was done" : "sent"}.`;
  return new MidstreamError("connection_lost", text, { method, sent });
};

/** What was waited for did not happen in time; the client goes on trying. */
export const timedOut = (what: string, ms: number, problem?: string): MidstreamError =>
  new MidstreamError("timed_out", `${what} did not happen within ${ms} ms (${problem ?? "it goes on"}).`, {
    ms,
    problem,
  });

/** The session is closed for this client; `details.reason` says why. Ask the client for it again. */
export const sessionClosed = (id: string, reason = "closed by this client"): MidstreamError =>
  new MidstreamError("session_closed", `Session ${id} is closed (${reason}).`, { id, reason });

/** To go on, make a new client. */
export const clientClosed = (): MidstreamError =>
  new MidstreamError("client_closed", "The client is closed.");

/** Too many prompts wait for the connection; this one was not taken. */
export const outboxFull = (id: string, limit: number): MidstreamError =>
  new MidstreamError("outbox_full", `${limit} prompts of ${id} wait.`, { id, limit });

/** What answers at the URL does not speak this protocol, or not this version of it. */
export const incompatibleServer = (problem: string): MidstreamError =>
  new MidstreamError("incompatible_server", `${problem} Check the URL.`);

/** The server closed the connection with a code that says not to come back (4500 to 4999). */
export const connectionRejected = (close_code: number, reason: string): MidstreamError =>
  new MidstreamError("connection_rejected", `The server refused: ${close_code} ${reason}.`, {
    close_code,
    reason,
  });

/** The token is of another subject than the one whose data this client has. Make a client for that one. */
export const anotherSubject = (subject: string): MidstreamError =>
  new MidstreamError("another_subject", `The token is that of ${subject}: make a new client.`, { subject });

/** The prompt was cancelled before a turn took it. */
export const inputCancelled = (id: string): MidstreamError =>
  new MidstreamError("input_cancelled", `Prompt ${id} was cancelled.`, { id });

/** A fault of the client itself, which ends it: please report it. */
export const clientFailed = (cause: unknown): MidstreamError => {
  const error = new MidstreamError("client", `The client failed: ${cause}.`);
  error.cause = cause;
  return error;
};
