/** The law of the list of sessions (SPEC 4.8): what answers and `sessions` frames make of it. Pure. */
import { readAlso } from "../protocol/frames.js";
import type { SessionInfo } from "../protocol/model.js";

/** Have the frames of a watch read from now on. */
export const readListFrames = (): void =>
  readAlso("sessions", "changes", "changed?:Session[] removed?:text[] incomplete?:flag");

/** What one frame says. */
export interface ListChanges {
  readonly changed?: readonly SessionInfo[];
  readonly removed?: readonly string[];
  /** The watch is over, because something was left out: ask again. */
  readonly incomplete?: boolean;
}

/** Last changed first; where that is equal, by id. */
const before = (a: SessionInfo, b: SessionInfo): number =>
  b.updated_at - a.updated_at || (a.session_id < b.session_id ? -1 : 1);

/** Sessions by id, each as new as it is known. */
export class Listing {
  readonly #archived: boolean;
  #known = new Map<string, SessionInfo>();
  /** What frames said while pages were under way: a page may have been read before. Infinity: it is gone. */
  readonly #meanwhile = new Map<string, number>();
  #pages = 0;

  /** `archived`: those that are archived instead of the others. */
  constructor(archived: boolean) {
    this.#archived = archived;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Take the answer of a watch: it replaces all that was known, so that what went meanwhile is gone. */
  replace(items: readonly SessionInfo[]): void {
    const old = this.#known;
    this.#known = new Map();
    this.#meanwhile.clear();
    for (const item of items) {
      const had = old.get(item.session_id);
      // a revision alone would not do: the database may be another one than before
      this.#put(had && JSON.stringify(had) === JSON.stringify(item) ? had : item);
    }
  }

  /** Keep in mind what frames say until `endPage`: a page is asked for. */
  beginPage(): void {
    this.#pages++;
  }

  endPage(): void {
    this.#pages--;
    if (!this.#pages) {
      this.#meanwhile.clear();
    }
  }

  /** Take a page that was asked for since the last `replace`, before its `endPage`. */
  join(items: readonly SessionInfo[]): void {
    for (const item of items) {
      if ((this.#meanwhile.get(item.session_id) ?? -1) < item.revision) {
        this.#put(item);
      }
    }
  }

  /** Take a frame; false where it changes nothing here. */
  apply({ changed = [], removed = [] }: ListChanges): boolean {
    let isChange = false;
    for (const session of changed) {
      this.#note(session.session_id, session.revision);
      isChange = this.#put(session) || isChange;
    }
    for (const id of removed) {
      this.#note(id, Number.POSITIVE_INFINITY);
      isChange = this.#known.delete(id) || isChange;
    }
    return isChange;
  }

  /** All, in order. */
  sorted(): SessionInfo[] {
    return [...this.#known.values()].sort(before);
  }

  #note(id: string, revision: number): void {
    if (this.#pages) {
      this.#meanwhile.set(id, Math.max(revision, this.#meanwhile.get(id) ?? 0));
    }
  }

  #put(session: SessionInfo): boolean {
    const { session_id } = session;
    const known = this.#known.get(session_id);
    if (known && known.revision >= session.revision) {
      return false;
    }
    if ((session.archived_at !== undefined) !== this.#archived) {
      return this.#known.delete(session_id);
    }
    this.#known.set(session_id, session);
    return true;
  }
}
