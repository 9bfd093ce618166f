/** What may be done with the address of a file: drawn, opened, stored, or nothing. */
import { isDataImage, remoteAddress } from "../markdown/addresses.js";

/** How a file can be reached. */
type Reach =
  | { readonly kind: "remote"; readonly href: string; readonly host: string }
  | { readonly kind: "inline"; readonly bytes: number }
  | { readonly kind: "none" };

const DATA = /^data:([^,]*),/i;

/** Tell how the file of an address can be reached. */
export function reach(url: string): Reach {
  const remote = remoteAddress(url);
  if (remote) {
    return { kind: "remote", ...remote };
  }
  const head = DATA.exec(url.slice(0, 1000));
  if (!head) {
    return { kind: "none" };
  }
  const length = url.length - head[0].length;
  return { kind: "inline", bytes: isBase64(head[1]) ? Math.floor((length * 3) / 4) : length };
}

const isBase64 = (head: string | undefined): boolean => /;base64$/i.test((head ?? "").trim());

/** Whether a picture of this address and type is drawn. */
export const isPicture = (url: string, mediaType: string): boolean =>
  isDataImage(url) || (/^image\/(?!svg)/i.test(mediaType) && remoteAddress(url) !== undefined);

/** The bytes of a data URL, as a file that no browser opens as a page; undefined where it is none. */
export function storable(url: string): Blob | undefined {
  const head = DATA.exec(url.slice(0, 1000));
  if (!head) {
    return undefined;
  }
  try {
    const body = decodeURIComponent(url.slice(head[0].length).replace(/%(?![0-9a-f]{2})/gi, "%25"));
    const bytes = isBase64(head[1])
      ? Uint8Array.from(atob(body.replace(/\s/g, "")), (char) => char.charCodeAt(0))
      : new TextEncoder().encode(body);
    return new Blob([bytes], { type: "application/octet-stream" });
  } catch {
    return undefined;
  }
}

/** A name for a file that is only a name: no folders, nothing invisible that makes it look like another. */
export function fileName(name: string | undefined, mediaType: string): string {
  const clean = (name ?? "")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "")
    .replace(/^.*[/\\]/, "")
    .trim();
  return clean || `file.${/^[\w-]+\/([\w-]+)/.exec(mediaType)?.[1] ?? "bin"}`;
}
