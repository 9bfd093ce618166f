/** Failures in words for people. */
import { MidstreamError } from "midstream-client";
import { notify } from "./notice.js";

const REASONS: Readonly<Record<string, string>> = {
  turn_running: "The agent is still answering. Stop it first, or wait until it is done.",
  queue_full: "Too many messages wait in this chat. Send it again when some were answered.",
  archived: "This chat is archived. Restore it to go on.",
  forking: "This chat is being copied. Try again in a moment.",
  delivery_not_allowed: "This server does not allow that way of sending while the agent answers.",
};

/** What browsers say of code that did not come, each in its own words: a phone that lost its network, say. */
const NOT_LOADED =
  /dynamically imported module|module script|unable to preload|^load failed|^failed to fetch/i;

/** What happened, and what to do. */
export function errorText(error: unknown): string {
  if (error instanceof Error && NOT_LOADED.test(error.message)) {
    return "This part of the page could not be loaded. Try again when the page is connected.";
  }
  if (!(error instanceof MidstreamError)) {
    return error instanceof Error ? error.message : String(error);
  }
  switch (error.code) {
    case "connection_lost":
    case "timed_out":
      return "There is no connection, so this was not done. Try again when the page is connected.";
    case "outbox_full":
      return "Too many messages wait for the connection already. Send this one when the page is connected.";
    case "limit_exceeded":
      return `This is too big for the server (${error.details.limit}: at most ${error.details.maximum}).`;
    case "refused":
      return REASONS[String(error.details.reason)] ?? error.message;
    default:
      return error.message;
  }
}

/** Do something, and tell the reader if it fails; `what` was to be done: "rename the chat". */
export async function attempt<T>(what: string, action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    notify({ text: `Could not ${what}. ${errorText(error)}`, tone: "danger" });
    return undefined;
  }
}
