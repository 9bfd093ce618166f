/** Why a chat cannot be shown, in words. Pure. */
import type { MidstreamError } from "midstream-client";
import { errorText } from "../app/errors.js";

interface GoneWords {
  readonly title: string;
  readonly text: string;
  readonly canReopen: boolean;
}

export function goneWords(error: MidstreamError): GoneWords {
  if (error.code === "not_found") {
    return {
      title: "There is no such chat",
      text: "It was deleted, it is somebody else's, or a part of its address is missing.",
      canReopen: true,
    };
  }
  if (error.details.reason === "deleted") {
    return {
      title: "This chat was deleted",
      text: "Somebody deleted it for everybody.",
      canReopen: false,
    };
  }
  if (error.details.reason === "forbidden") {
    return {
      title: "You may not see this chat any more",
      text: "Your token no longer covers it. Ask whoever gave you the token.",
      canReopen: true,
    };
  }
  if (error.code === "forbidden") {
    return {
      title: "Your token does not allow this",
      text:
        error.details.field === "session_id"
          ? "It is good for certain chats only, and begins no others. Open one that is in the list."
          : errorText(error),
      canReopen: true,
    };
  }
  return { title: "This chat is closed", text: errorText(error), canReopen: true };
}
