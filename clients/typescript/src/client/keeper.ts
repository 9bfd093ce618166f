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

/** Keep sessions in this map. `place` names whose they are: give each server, and each user, another. */
export const keepIn = (map: TextMap, place = ""): Store => ({
  keeper: (sessionId, includeInternal, onTrouble) => {
    const key = JSON.stringify([place, sessionId]);
    const replicaKey = `replica ${key}${includeInternal ? " internal" : ""}`;
    const promptKey = `prompt ${key} `;
    let kept: string | undefined;
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
        const prompts = (await attempt(() => map.readAll(promptKey))) as KeptPrompt[] | undefined;
        const inOrder = (prompts ?? []).sort((a, b) => a.at - b.at).map(({ prompt }) => prompt);
        return { ...(replica && { replica }), prompts: inOrder };
      },
      async keepPrompt(prompt, at) {
        await attempt(() => map.write(promptKey + prompt.message_id, { prompt, at } satisfies KeptPrompt));
      },
      dropPrompt(messageId) {
        void attempt(() => map.remove(promptKey + messageId));
      },
      keepReplica(given) {
        const replica = saved(given, KEPT_MESSAGES);
        const place = replica && JSON.stringify([replica.cursor, replica.from_sequence]);
        if (replica && place !== kept) {
          kept = place;
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
  return replica;
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
