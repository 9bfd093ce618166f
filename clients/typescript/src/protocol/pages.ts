/** Pages of earlier messages: whether one fits a replica, and how it is brought up to date (SPEC 4.4). */
import type { Page } from "./calls.js";
import type { Change, Delta } from "./frames.js";
import { Misfit, type PageOutcome } from "./outcomes.js";
import { Window } from "./window.js";

/** Frames that are kept; where more come before the page does, it is read again. */
const KEPT = 2000;

/** Keeps the frames that came since a page was asked for, until no page is on its way. */
export class AwaitedPages {
  #awaited = 0;
  #since = 0;
  #frames: (Delta | Change)[] = [];

  /** A page was asked for when the replica stood at this version. */
  expect(version: number): void {
    if (!this.#awaited) {
      this.restart(version);
    }
    this.#awaited++;
  }

  /** A page came, or will not come. */
  forget(): void {
    this.#awaited = Math.max(0, this.#awaited - 1);
    if (!this.#awaited) {
      this.#frames = [];
    }
  }

  /** Something other than single frames brought the replica to this version. */
  restart(version: number): void {
    this.#since = version;
    this.#frames = [];
  }

  /** Keep a frame that was applied. */
  keep(frame: Delta | Change): void {
    if (this.#awaited && this.#frames.push(frame) > KEPT) {
      this.restart(frame.version);
    }
  }

  /** Return the frames above a version; undefined where some of them are not kept any more. */
  above(version: number): (Delta | Change)[] | undefined {
    return this.#awaited && version >= this.#since
      ? this.#frames.filter((frame) => frame.version > version)
      : undefined;
  }
}

/** Return the page as the window that ends where `first` begins, or why it cannot be one; changes nothing. */
export function earlierMessages(
  page: Page,
  sessionId: string,
  first: number | undefined,
  frames: readonly (Delta | Change)[],
  firstSequence: number,
): Window | PageOutcome {
  const start = page.start_sequence;
  if (
    page.before_sequence !== first ||
    (page.has_more && start === undefined) ||
    page.items.some((message) => message.session_id !== sessionId)
  ) {
    return "ignored";
  }
  const earlier = new Window(sessionId, page.has_more ? start : firstSequence, first);
  earlier.put(page.items);
  try {
    for (const frame of frames) {
      if (frame.tag === "d") {
        earlier.append(frame);
      } else {
        const { version } = frame;
        earlier.carryOut(earlier.plan(frame.content.messages, { version, below: 0, durable: version }));
      }
    }
  } catch (error) {
    if (error instanceof Misfit) {
      return "again";
    }
    throw error;
  }
  earlier.dropBelow(firstSequence);
  return earlier;
}
