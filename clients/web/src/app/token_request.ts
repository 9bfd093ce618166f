/** Asking the reader for a token: while the server wants one, a dialog asks, and the client waits. */
import { Client } from "midstream-client";
import { browserEnvironment } from "midstream-client/browser";
import { useSyncExternalStore } from "react";
import { identity, remember, tidy } from "./identity.js";

/** What is asked of the reader. */
interface Asking {
  /** Whether a client waits for a token. */
  readonly isAsked: boolean;
  /** Whether the dialog is shown: the reader may put it off. */
  readonly isOpen: boolean;
}

let asking: Asking = { isAsked: false, isOpen: false };
let waiting: Promise<string> | undefined;
let give: (token: string) => void = () => undefined;
const listeners = new Set<() => void>();

function change(next: Asking): void {
  asking = next;
  for (const listener of listeners) {
    listener();
  }
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useAsking = (): Asking => useSyncExternalStore(subscribe, () => asking);

/** Ask the reader for a token, and return it when there is one; asked again meanwhile, it is one question. */
export function askForToken(): Promise<string> {
  waiting ??= new Promise((resolve) => {
    give = (token) => {
      waiting = undefined;
      change({ isAsked: false, isOpen: false });
      resolve(token);
    };
    change({ isAsked: true, isOpen: true });
  });
  return waiting;
}

/** Show the dialog, or put it off. */
export const showDialog = (isOpen: boolean): void => change({ ...asking, isOpen });

/** How long a server may take to say whether it takes a token, in ms. */
const PATIENCE_MS = 15_000;

/** Who somebody is, as the server says. */
interface Known {
  readonly subject: string;
  readonly scopes: readonly string[];
}

/**
 * Ask the server whose a token is, over a connection of its own: nothing that is kept for one reader may be shown
 * to another, or sent in the other's name. Returns why it is not taken, in words, where it is not.
 */
export function whose(url: string, token: string): Promise<Known | string> {
  const probe = new Client(url, { environment: browserEnvironment(), token });
  return new Promise((resolve) => {
    const end = (answer: Known | string) => {
      clearTimeout(timer);
      stop();
      probe.close();
      resolve(answer);
    };
    const look = () => {
      const { state, welcome, refusal, error } = probe;
      if (state === "live" && welcome) {
        end({ subject: welcome.subject, scopes: welcome.scopes });
      } else if (state === "closed") {
        end(refusal ? REFUSED[refusal] : `The server did not take it: ${error?.message}`);
      }
    };
    const timer = setTimeout(
      () => end("The server could not be reached. Try again when you are connected."),
      PATIENCE_MS,
    );
    const stop = probe.subscribe(look);
    probe.connect();
  });
}

const REFUSED = {
  unauthorized:
    "The server does not accept this token. Look whether all of it was copied, or ask for another.",
  token_expired: "This token has expired. Ask for another.",
} as const;

/** What became of a token that was given. */
export type Taken = "goes on" | "reload" | { readonly problem: string };

/**
 * Take a token that the reader gave. The page goes on with it where it is of the same reader; else it is to be
 * loaded again, as that of another.
 */
export async function takeToken(url: string, pasted: string, isWaitedFor: boolean): Promise<Taken> {
  const token = tidy(pasted);
  if (!token) {
    return { problem: "Paste the token into the field first." };
  }
  const known = await whose(url, token);
  if (typeof known === "string") {
    return { problem: known };
  }
  const isSame = known.subject === identity().subject;
  const isKept = remember({ token, ...known });
  if (isSame && isWaitedFor) {
    give(token);
    return "goes on";
  }
  return isKept
    ? "reload"
    : {
        problem:
          "This browser keeps nothing for a tab, so the page cannot know you. Allow it site data, and try again.",
      };
}
