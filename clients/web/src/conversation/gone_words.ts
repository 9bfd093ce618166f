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
  return { title: "This chat is closed", text: errorText(error), canReopen: true };
}
