/**
 * Who this tab is: the token that its reader gave, and whose it is. Kept in sessionStorage, so that it ends with the
 * tab and no other page of this browser has it; never in an address, in a log, or where it would outlive the tab.
 */

/** Who the reader of a tab is. */
export interface Identity {
  readonly token: string | null;
  /** As the server calls them. */
  readonly subject: string;
  /** What the token allows, as the server last said it. */
  readonly scopes?: readonly string[] | undefined;
}

/** Who everybody is at a server without tokens (SPEC 10.5). */
export const NOBODY: Identity = { token: null, subject: "local" };

const KEY = "midstream.identity";

let current: Identity | undefined;
let isForgotten = false;

/** Who this tab is; for as long as the page is loaded it is the same subject. */
export function identity(): Identity {
  current ??= readIdentity(stored());
  return current;
}

/**
 * Remember who this tab is; another subject counts when the page is loaded again. False where the browser keeps
 * nothing for a tab: it is forgotten with the page then.
 */
export function remember(next: Identity): boolean {
  if (isForgotten) {
    return false;
  }
  current = next.subject === identity().subject ? next : identity();
  try {
    sessionStorage.setItem(KEY, JSON.stringify(next));
    return true;
  } catch {
    return false;
  }
}

/** Be nobody again, when the page is loaded again. */
export function forgetIdentity(): void {
  isForgotten = true;
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // then there is nothing either
  }
}

/** Read an identity, as far as it is one. */
export function readIdentity(text: string | null): Identity {
  try {
    const { token, subject, scopes } = JSON.parse(text ?? "null") as Partial<Identity>;
    if ((token === null || typeof token === "string") && typeof subject === "string" && subject) {
      return { token, subject, scopes: Array.isArray(scopes) ? scopes.map(String) : undefined };
    }
  } catch {
    // nothing was kept, or something else
  }
  return NOBODY;
}

function stored(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** A token as it was meant: without what is copied along with it. */
export const tidy = (pasted: string): string =>
  pasted
    .trim()
    .replace(/^(authorization:\s*)?bearer\s+/i, "")
    .replace(/^(["'])(.*)\1$/s, "$2")
    .trim();

/** What distinguishes the things that are kept for a subject, so that nobody else is shown them. */
export const placeOf = (subject: string): string =>
  subject === NOBODY.subject ? "" : encodeURIComponent(subject);
