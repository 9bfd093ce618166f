/**
 * Forgetting a reader: the token, and all that this browser keeps for them. What is still being written while the
 * page goes would come back; so it is noted who is to be forgotten, and done when the next page is loaded.
 */
import { forgetStored } from "midstream-client/indexeddb";
import { storePlace } from "./client.js";
import { forgetIdentity, identity } from "./identity.js";
import { forgetKept, readText, writeText } from "./kept.js";

const KEY = "midstream-forget"; // nobody's own: what is kept for a reader begins otherwise

/** Forget the reader of this tab, in all tabs, and load the page anew. */
export function forgetReader(): void {
  note(identity().subject);
  forgetKept(identity().subject);
  forgetIdentity();
  location.reload();
}

/** Forget who is to be forgotten, before anything that is kept is shown; where that fails, the next page tries again. */
export async function forgetNoted(): Promise<void> {
  const left: string[] = [];
  for (const subject of noted()) {
    forgetKept(subject);
    await forgetStored(storePlace(subject)).catch(() => left.push(subject));
  }
  if (left.length !== noted().length) {
    writeText(KEY, left.length ? JSON.stringify(left) : "");
  }
}

/** Where another tab forgets the reader of this one, do as it does. */
export function forgetWithOthers(): void {
  addEventListener("storage", (event) => {
    if (event.key === KEY && subjects(event.newValue).includes(identity().subject)) {
      forgetReader();
    }
  });
}

const noted = (): readonly string[] => subjects(readText(KEY));

function note(subject: string): void {
  writeText(KEY, JSON.stringify([...new Set([...noted(), subject])]));
}

function subjects(text: string | null): readonly string[] {
  try {
    const read: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(read) ? read.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}
