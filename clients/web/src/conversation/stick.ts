/** Whether the list follows what grows below: only while the reader is at the end. Pure. */

/** Where a scroll container is, in pixels. */
export interface Place {
  readonly offset: number;
  readonly size: number;
  readonly viewport: number;
}

/** So close to the end counts as the end: rounding, and a line's worth of scroll. */
const NEAR = 24;

const isAtEnd = ({ offset, size, viewport }: Place): boolean => size - viewport - offset <= NEAR;

/**
 * Whether to follow after a scroll. Content that grows moves the end away, and is no wish of the reader's; only
 * a scroll upwards is, however small. A list that became shorter, or a window that became higher (a keyboard
 * that went, a composer that shrank), moves the reader up as well, and that is no wish either.
 */
export function follows(followed: boolean, before: Place, now: Place): boolean {
  const movedUp =
    now.offset < before.offset - 1 && now.size >= before.size - 1 && now.viewport <= before.viewport + 1;
  return !movedUp && (followed || isAtEnd(now));
}

/** How many of `ids` come after the last one that was seen; none where all is seen, or where it is not known. */
export function countNew(ids: readonly string[], lastSeen: string | undefined): number {
  const at = lastSeen === undefined ? -1 : ids.lastIndexOf(lastSeen);
  return at < 0 ? 0 : ids.length - 1 - at;
}
