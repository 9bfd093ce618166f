/** The messages of a chat: only what is in view is drawn, so that it can be of any length. */
import { ArrowDown } from "lucide-react";
import type { PromptParams } from "midstream-client";
import type { SessionSnapshot } from "midstream-client/react";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { Actions } from "./actions.js";
import styles from "./message_list.module.css";
import { MessageRow } from "./message_row.js";
import { grewAtStart, type Row, rowsOf } from "./rows.js";
import { countNew, type Place } from "./stick.js";
import { TurnStatus } from "./turn_status.js";
import { useStick } from "./use_stick.js";

/** The place above the first message, in px: always the same, so that nothing moves when it changes. */
const TOP_PX = 40;
/** So near the top, in px, earlier messages are loaded: before the reader is there. */
const EARLY_PX = 2000;
const PAGE = 50;

interface MessageListProps {
  readonly snapshot: SessionSnapshot;
  /** Prompts to show where their messages will stand. */
  readonly pending: readonly PromptParams[];
  readonly actions: Actions;
  readonly editing: string | undefined;
}

export function MessageList({ snapshot, pending, actions, editing }: MessageListProps) {
  const { messages, turns, info, hasEarlier, session, state } = snapshot;
  const list = useRef<VirtualizerHandle>(null);
  const today = new Date().setHours(12, 0, 0, 0);
  const summarizedThrough = info?.summarized_through ?? 0;
  const rows = useMemo(
    () => rowsOf({ messages, turns, pending, summarizedThrough, hasEarlier, today }),
    [messages, turns, pending, summarizedThrough, hasEarlier, today],
  );
  const loadEarlier = useLoadEarlier(snapshot);
  const onScroll = useCallback(
    (place: Place) => {
      if (place.offset < EARLY_PX) {
        loadEarlier();
      }
    },
    [loadEarlier],
  );
  const { scroller, content, isFollowing, follow, toEnd } = useStick(onScroll);
  // Virtualizer makes itself higher a frame after a message grew: a line that was just written would be seen
  // below its place, and then jump up. It sets the same height then.
  const last = rows.length - 1;
  const onResize = useCallback(() => {
    const box = content.current?.querySelector<HTMLElement>(":scope > [data-rows] > *");
    if (box && list.current && last >= 0) {
      box.style.height = `${list.current.getItemOffset(last) + list.current.getItemSize(last)}px`;
      follow();
    }
  }, [content, follow, last]);
  useToEndOnSending(pending, toEnd);
  const first = rows[0]?.key;
  useEffect(() => {
    // what is loaded may not fill the place above: then there is nothing to scroll by
    if (first !== undefined && scroller.current && scroller.current.scrollTop < EARLY_PX) {
      loadEarlier();
    }
  }, [first, loadEarlier, scroller]);

  const showQuestion = () => {
    const [asked] = snapshot.interactions;
    const at = rows.findIndex((row) => row.message === asked?.message);
    list.current?.scrollToIndex(at < 0 ? rows.length - 1 : at, { align: "end" });
  };
  return (
    <div className={styles.frame}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a place that scrolls must be reached by keyboard */}
      <section ref={scroller} className={styles.scroller} aria-label="Messages" tabIndex={0} data-scroller>
        <div ref={content}>
          <Top text={topText(snapshot, !rows.length)} />
          <div className={styles.rows} data-rows>
            <Virtualizer
              ref={list}
              scrollRef={scroller}
              startMargin={TOP_PX}
              shift={useGrewAtStart(rows)}
              data={rows}
              bufferSize={600}
              onResize={onResize}
            >
              {(row) => (
                <MessageRow
                  key={row.key}
                  row={row}
                  actions={actions}
                  isEditing={editing !== undefined && row.key === editing}
                  isLive={state === "live"}
                />
              )}
            </Virtualizer>
          </div>
          <TurnStatus snapshot={snapshot} onShowQuestion={showQuestion} key={session.sessionId} />
        </div>
      </section>
      <JumpButton rows={rows} isFollowing={isFollowing} onJump={toEnd} />
    </div>
  );
}

function Top({ text }: { readonly text: string }): ReactNode {
  return (
    <div className={styles.top} style={{ height: TOP_PX }}>
      {text && <p key={text}>{text}</p>}
    </div>
  );
}

/** What stands above the first message. */
function topText({ info, hasEarlier, state }: SessionSnapshot, isEmpty: boolean): string {
  if (hasEarlier) {
    return "Loading earlier messages…";
  }
  if (!info) {
    return state === "offline"
      ? "This chat is not on this device yet. It is shown when connected."
      : "Loading…";
  }
  return isEmpty ? "Nothing was said here yet." : "";
}

/** Loads earlier messages, one page at a time; a failure is tried again at the next scroll. */
function useLoadEarlier({ session, hasEarlier }: SessionSnapshot): () => void {
  const isLoading = useRef(false);
  return useCallback(() => {
    if (hasEarlier && !isLoading.current) {
      isLoading.current = true;
      session
        .loadEarlier(PAGE)
        .catch(() => undefined)
        .finally(() => {
          isLoading.current = false;
        });
    }
  }, [session, hasEarlier]);
}

/** Whether the rows now begin before those of the drawing before. */
function useGrewAtStart(rows: readonly Row[]): boolean {
  const [first, setFirst] = useState(rows[0]?.key);
  const grew = grewAtStart(first, rows);
  useEffect(() => setFirst(rows[0]?.key), [rows]);
  return grew;
}

/** Who sends something wants to see it. */
function useToEndOnSending(pending: readonly PromptParams[], toEnd: () => void): void {
  const last = pending.at(-1)?.message_id;
  useEffect(() => {
    if (last !== undefined) {
      toEnd();
    }
  }, [last, toEnd]);
}

interface JumpButtonProps {
  readonly rows: readonly Row[];
  readonly isFollowing: boolean;
  readonly onJump: () => void;
}

function JumpButton({ rows, isFollowing, onJump }: JumpButtonProps) {
  const lastSeen = useRef(rows.at(-1)?.key);
  if (isFollowing) {
    lastSeen.current = rows.at(-1)?.key;
    return null;
  }
  const count = countNew(
    rows.map((row) => row.key),
    lastSeen.current,
  );
  return (
    <button type="button" className={styles.jump} onClick={onJump}>
      <ArrowDown aria-hidden />
      {count ? `${count} new` : "Latest"}
    </button>
  );
}
