/** A store of any map from text to data: IndexedDB, AsyncStorage, a file. */
import type { PromptParams } from "../protocol/calls.js";
import type { Replica, SavedReplica } from "../protocol/merge.js";
import { checkMap } from "../protocol/schema.js";
import type { Keeper, Kept, Store } from "./store.js";

/** A map from text to plain data (what JSON can hold). Each write is whole, or not done at all. */
export interface TextMap {
  read(key: string): Promise<unknown>;
  /** All values whose keys begin so. */
  readAll(prefix: string): Promise<unknown[]>;
  write(key: string, value: unknown): Promise<unknown>;
  remove(key: string): Promise<unknown>;
}

/** The form of what is kept; what has another is not read. */
const FORM = 1;
/** Messages of a replica that are kept: a reload shows them at once, and earlier ones are loaded. */
const KEPT_MESSAGES = 200;

interface KeptReplica {
  readonly form: number;
  readonly replica: SavedReplica;
}

interface KeptPrompt {
  readonly prompt: PromptParams;
  readonly at: number;
}

/** With what the keys begin of all that is kept in a place. */
export const keysOf = (place: string): string[] =>
  ["replica ", "prompt "].map((kind) => kind + JSON.stringify([place, ""]).slice(0, -'""]'.length));

/** Keep sessions in this map. `place` names whose they are: give each server, and each user, another. */
export const keepIn = (map: TextMap, place = ""): Store => ({
  keeper: (sessionId, includeInternal, onTrouble) => {
    const key = JSON.stringify([place, sessionId]);
    const replicaKey = `replica ${key}${includeInternal ? " internal" : ""}`;
    const promptKey = `prompt ${key} `;
    let kept: string | undefined;
    // the place of the last prompt: those of one millisecond, or of a clock that was put back, stay in order
    let latest = 0;
    // one after the other: a slow write must not come after a later one
    let last: Promise<unknown> = Promise.resolve();
    const attempt = <T>(work: () => Promise<T>): Promise<T | undefined> => {
      const next = last.then(work).catch((error: unknown) => {
        onTrouble(error);
        return undefined;
      });
      last = next;
      return next;
    };
    const keeper: Keeper = {
      async load(): Promise<Kept> {
        const replica = await attempt(async () => readKept(await map.read(replicaKey)));
        const all = (await attempt(() => map.readAll(promptKey))) ?? [];
        const prompts = all.filter((one): one is KeptPrompt => isPrompt(one, sessionId, onTrouble));
        prompts.sort((a, b) => a.at - b.at);
        latest = Math.max(latest, prompts.at(-1)?.at ?? 0);
        return { ...(replica && { replica }), prompts: prompts.map(({ prompt }) => prompt) };
      },
      async keepPrompt(prompt, wallMs) {
        const at = Math.max(wallMs, latest + 1);
        latest = at;
        await attempt(() => map.write(promptKey + prompt.message_id, { prompt, at } satisfies KeptPrompt));
      },
      dropPrompt(messageId) {
        void attempt(() => map.remove(promptKey + messageId));
      },
      keepReplica(given) {
        const replica = saved(given, KEPT_MESSAGES);
        const state = replica && JSON.stringify([replica.cursor, replica.from_sequence]);
        if (replica && state !== kept) {
          kept = state;
          void attempt(() => map.write(replicaKey, { form: FORM, replica } satisfies KeptReplica));
        }
      },
      forget(prompts) {
        kept = undefined;
        void attempt(() => map.remove(replicaKey));
        for (const { message_id } of prompts) {
          keeper.dropPrompt(message_id);
        }
      },
    };
    return keeper;
  },
});

/** Return a replica as one value, with the newest `most` messages; undefined while there is no cursor. */
export function saved(replica: Replica, most: number): SavedReplica | undefined {
  const { session } = replica;
  const cursor = replica.cursor();
  if (!cursor || !session) {
    return undefined;
  }
  const all = replica.messages();
  const messages = all.slice(-most);
  const isCut = messages.length < all.length;
  return {
    cursor,
    session,
    turns: [...replica.turns.values()],
    messages,
    from_sequence: (isCut ? messages[0]?.sequence : replica.fromSequence) ?? null,
    has_more: replica.hasMore || isCut,
  };
}

/** Return what was kept, if it has the form of now. @throws MidstreamError `invalid` */
function readKept(kept: unknown): SavedReplica | undefined {
  const { form, replica } = (kept ?? {}) as Partial<KeptReplica>;
  if (form !== FORM) {
    return undefined;
  }
  checkMap(
    "cursor:map session:Session turns:Turn[] messages:Message[] from_sequence:count~ has_more:flag",
    replica,
  );
  checkMap("epoch version:count durable:count", replica?.cursor); // the server would refuse another, for ever
  return replica;
}

/** Whether this is a prompt of the session; one that was damaged is passed over, and stops nothing. */
function isPrompt(kept: unknown, sessionId: string, onTrouble: (error: unknown) => void): kept is KeptPrompt {
  try {
    checkMap("prompt:map at:count", kept);
    const { prompt } = kept as KeptPrompt;
    checkMap("session_id message_id parts:map[] delivery", prompt);
    return prompt.session_id === sessionId;
  } catch (error) {
    onTrouble(error);
    return false;
  }
}

/** A map that lives as long as the program: for tests. */
export function memoryMap(): TextMap {
  const held = new Map<string, string>();
  return {
    read: async (key) => JSON.parse(held.get(key) ?? "null"),
    readAll: async (prefix) =>
      [...held].filter(([key]) => key.startsWith(prefix)).map(([, value]) => JSON.parse(value)),
    write: async (key, value) => held.set(key, JSON.stringify(value)),
    remove: async (key) => held.delete(key),
  };
}
