/** Files that go with a prompt, as data URLs within what the server takes in a frame (SPEC 11.2). */
import type { UserPart } from "midstream-client";
import { size } from "../parts/amounts.js";

/** A file that was read, and can be sent. */
export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  readonly url: string;
}

/** What a prompt's frame holds beside its parts' texts and URLs. */
const FRAME_SPARE = 4096;
const FALLBACK_TYPE = "application/octet-stream";

/** How long a data URL of so many bytes is. */
export const dataUrlLength = (bytes: number, mediaType: string): number =>
  `data:${mediaType};base64,`.length + Math.ceil(bytes / 3) * 4;

/** How many characters of data URLs still fit into a prompt. */
export function roomLeft(frameBytes: number, textBytes: number, attachments: readonly Attachment[]): number {
  const taken = attachments.reduce((sum, one) => sum + one.url.length + one.name.length + 64, 0);
  return Math.max(0, frameBytes - FRAME_SPARE - textBytes - taken);
}

/** Why a file cannot be attached, in words; undefined where it can. */
export function refusal(
  file: { name: string; size: number; type: string },
  room: number,
): string | undefined {
  if (dataUrlLength(file.size, file.type || FALLBACK_TYPE) <= room) {
    return undefined;
  }
  const left = Math.floor((room * 3) / 4);
  const said = `${file.name || "The file"} has ${size(file.size)}`;
  return left < 1024
    ? `${said}: this message is full. Send it, and attach the file to the next one.`
    : `${said}, but only ${size(left)} fit into this message. Attach a smaller file.`;
}

/** Read a file. @throws DOMException the browser cannot read it */
export function readAttachment(file: File, id: string): Promise<Attachment> {
  const mediaType = file.type || FALLBACK_TYPE;
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const url = String(reader.result).replace(/^data:[^,]*,/, `data:${mediaType};base64,`);
      resolve({ id, name: file.name || "pasted", mediaType, url });
    };
    reader.readAsDataURL(file);
  });
}

/** The parts of a prompt: its text, then its files. */
export function promptParts(text: string, attachments: readonly Attachment[]): readonly UserPart[] {
  const files = attachments.map(
    ({ name, mediaType, url }): UserPart => ({ type: "file", url, media_type: mediaType, filename: name }),
  );
  return text.trim() ? [{ type: "text", text: text.trim() }, ...files] : files;
}
