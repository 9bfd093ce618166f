/** Digests: how a replica proves that it equals the server (SPEC 5.6). */

import { known } from "./forms.js";
import type { Message, Value } from "./model.js";
import { sha256 } from "./sha256.js";
import { utf8 } from "./utf8.js";

/** Return the canonical JSON of a value (RFC 8785): keys sorted by UTF-16 units, numbers as ECMAScript writes them. */
export function canonical(value: Value): string {
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join()}]`;
  }
  if (typeof value !== "object" || value === null) {
    return JSON.stringify(value);
  }
  const map = value as { readonly [key: string]: Value };
  const entries = Object.keys(map).sort();
  return `{${entries.map((key) => `${JSON.stringify(key)}:${canonical(map[key] as Value)}`).join()}}`;
}

/** Return the first 16 hex digits of the SHA-256 of a message as it stands in a page. */
export const messageDigest = (message: Message): string =>
  sha256(utf8(canonical(known(message)))).slice(0, 16);
