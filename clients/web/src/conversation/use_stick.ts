/** A scroll container that stays at its end while the reader is there. */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { follows, type Place } from "./stick.js";

interface Stick {
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  /** Whether the end is followed: the reader is there. */
  readonly isFollowing: boolean;
  /** Be at the end now, if it is followed: the content has grown. */
  follow(): void;
  /** Go to the end, and follow it again. */
  toEnd(): void;
}

const placeOf = (element: HTMLElement): Place => ({
  offset: element.scrollTop,
  size: element.scrollHeight,
  viewport: element.clientHeight,
});

/** Follow the end of the content; `onScroll` hears of each scroll. */
export function useStick(onScroll: (place: Place) => void): Stick {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const [isFollowing, setFollowing] = useState(true);
  const listener = useRef(onScroll);
  listener.current = onScroll;

  const set = useCallback((next: boolean) => {
    following.current = next;
    setFollowing(next);
  }, []);
  const toEnd = useCallback(() => {
    set(true);
    const element = scroller.current;
    if (element) {
      element.scrollTop = element.scrollHeight;
    }
  }, [set]);

  const follow = useCallback(() => {
    const element = scroller.current;
    if (element && following.current) {
      element.scrollTop = element.scrollHeight;
    }
  }, []);
  useLayoutEffect(follow); // what was just drawn is at its place before it is seen

  useEffect(() => {
    const element = scroller.current;
    const inner = content.current;
    if (!element || !inner) {
      return undefined;
    }
    let before = placeOf(element);
    const onMove = () => {
      const now = placeOf(element);
      set(follows(following.current, before, now));
      before = now;
      listener.current(now);
    };
    const onGrowth = () => {
      follow();
      before = placeOf(element);
    };
    const sizes = new ResizeObserver(onGrowth);
    sizes.observe(element);
    sizes.observe(inner);
    element.addEventListener("scroll", onMove, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", onMove);
    };
  }, [set, follow]);

  return { scroller, content, isFollowing, follow, toEnd };
}
