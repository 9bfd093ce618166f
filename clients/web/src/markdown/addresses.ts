/** Which addresses of a model's answer the page lets a person, or itself, open. */

const LINK_SCHEMES = new Set(["http:", "https:", "mailto:"]);
const REMOTE_SCHEMES = new Set(["http:", "https:"]);
/** Pictures that are only pixels: no SVG, which can hold scripts and links. */
const DATA_IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif)[;,]/i;

function parsed(address: string): URL | undefined {
  try {
    return new URL(address);
  } catch {
    return undefined; // a relative address too: it would mean a place on this page
  }
}

/** The address of a link as the browser understands it; undefined where it may not be one. */
export function linkAddress(address: string): string | undefined {
  const url = parsed(address);
  return url && LINK_SCHEMES.has(url.protocol) ? url.href : undefined;
}

/** An address on the web, with its host; undefined for all others. */
export function remoteAddress(address: string): { readonly href: string; readonly host: string } | undefined {
  const url = parsed(address);
  return url && REMOTE_SCHEMES.has(url.protocol) ? { href: url.href, host: url.host } : undefined;
}

/** Whether the address is itself a picture that is safe to draw. */
export const isDataImage = (address: string): boolean => DATA_IMAGE.test(address);
