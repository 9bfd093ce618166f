/** Where a client keeps, over a reload, what it last showed and what is not sent yet (SPEC 4.4, rule 18). */
import type { PromptParams } from "../protocol/calls.js";
import type { SavedReplica } from "../protocol/merge.js";
import type { PromptKeeper } from "./prompts.js";

/**
 * A map from text to plain data (what JSON can hold). Each write is whole or not done at all. IndexedDB is in
 * `midstream-client/indexeddb`; in React Native, AsyncStorage with JSON does it.
 */
export interface Store {
  read(key: string): Promise<unknown>;
  /** All values whose keys begin so, in the order of their keys. */
  readAll(prefix: string): Promise<unknown[]>;
  write(key: string, value: unknown): Promise<void>;
  remove(key: string): Promise<void>;
}

/** A store that lives as long as the program: for tests. */
export function memoryStore(): Store {
  const held = new Map<string, string>();
  return {
    read: async (key) => JSON.parse(held.get(key) ?? "null"),
    readAll: async (prefix) =>
      [...held.keys()]
        .filter((key) => key.startsWith(prefix))
        .sort()
        .map((key) => JSON.parse(held.get(key) as string)),
    write: async (key, value) => {
      held.set(key, JSON.stringify(value));
    },
    remove: async (key) => {
      held.delete(key);
    },
  };
}

/** The form of what is kept; what has another is not read. */
const FORM = 1;
/** Messages of a replica that are kept: a reload shows them at once, and earlier ones are loaded. */
const KEPT_MESSAGES = 200;

interface Kept {
  readonly form: number;
  readonly replica: SavedReplica;
}

/** What a store has of one session. A store that fails costs what it would have kept, and nothing else. */
export class Keeper implements PromptKeeper {
  readonly #store: Store | undefined;
  readonly #onTrouble: (error: unknown) => void;
  readonly #replicaKey: string;
  readonly #promptKey: string;
  #kept = "";
  /** What was asked of the store before: a slow write must not come after a later one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    store: Store | undefined,
    place: string,
    sessionId: string,
    includeInternal: boolean,
    onTrouble: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#onTrouble = onTrouble;
    const key = JSON.stringify([place, sessionId]);
    this.#replicaKey = `replica ${key}${includeInternal ? " internal" : ""}`;
    this.#promptKey = `prompt ${key} `;
  }

  /** Return the replica and the prompts that were kept, as far as there are any. */
  async load(): Promise<{ replica?: SavedReplica; prompts: PromptParams[] }> {
    const kept = (await this.#attempt((store) => store.read(this.#replicaKey))) as Kept | undefined;
    const prompts = ((await this.#attempt((store) => store.readAll(this.#promptKey))) ?? []) as { prompt: PromptParams; at: number }[];
    const inOrder = prompts.sort((a, b) => a.at - b.at).map((one) => one.prompt);
    return { ...(kept?.form === FORM ? { replica: kept.replica } : {}), prompts: inOrder };
  }

  /** Keep a prompt; `at` gives its place among the others. Resolves when it is kept. */
  async keepPrompt(prompt: PromptParams, at: number): Promise<void> {
    await this.#attempt((store) => store.write(this.#promptKey + prompt.message_id, { prompt, at }));
  }

  dropPrompt(messageId: string): void {
    void this.#attempt((store) => store.remove(this.#promptKey + messageId));
  }

  /** Keep the replica as it is now, unless it is kept already. */
  async keepReplica(save: (most: number) => SavedReplica | undefined): Promise<void> {
    const replica = this.#store && save(KEPT_MESSAGES);
    const place = replica && `${replica.cursor.epoch}:${replica.cursor.version}:${replica.from_sequence}`;
    if (replica && place && place !== this.#kept) {
      this.#kept = place;
      await this.#attempt((store) => store.write(this.#replicaKey, { form: FORM, replica } satisfies Kept));
    }
  }

  /** Forget the session: it was deleted, or may not be seen any more. */
  forget(prompts: readonly PromptParams[]): void {
    void this.#attempt((store) => store.remove(this.#replicaKey));
    for (const prompt of prompts) {
      this.dropPrompt(prompt.message_id);
    }
  }

  #attempt<T>(work: (store: Store) => Promise<T>): Promise<T | undefined> {
    const { store } = this;
    const next = this.#last
      .then(() => store && work(store))
      .catch((error: unknown) => {
        this.#onTrouble(error);
        return undefined;
      });
    this.#last = next;
    return next;
  }
}
