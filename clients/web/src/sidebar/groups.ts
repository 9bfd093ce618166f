/** The list of chats in groups by day, and what is found in it. Pure. */
import type { SessionInfo } from "midstream-client";

export interface Group {
  readonly label: string;
  readonly sessions: readonly SessionInfo[];
}

const DAY_MS = 86_400_000;

/** How many calendar days `at` lies before `now`, by the clock of this place. */
export function daysBefore(now: number, at: number): number {
  const midnight = (ms: number) => {
    const date = new Date(ms);
    return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  };
  return Math.round((midnight(now) - midnight(at)) / DAY_MS);
}

/** What stands over the chats of a day. */
export function groupLabel(now: number, at: number, locale?: string): string {
  const days = daysBefore(now, at);
  if (days <= 0) {
    return "Today"; // the server's clock may be a little ahead
  }
  if (days === 1) {
    return "Yesterday";
  }
  if (days <= 7) {
    return "Previous 7 days";
  }
  if (days <= 30) {
    return "Previous 30 days";
  }
  const sameYear = new Date(now).getFullYear() === new Date(at).getFullYear();
  return new Date(at).toLocaleDateString(
    locale,
    sameYear ? { month: "long" } : { month: "long", year: "numeric" },
  );
}

/** Group chats that come last changed first; the order stays. */
export function groupByDay(sessions: readonly SessionInfo[], now: number, locale?: string): readonly Group[] {
  const groups: { label: string; sessions: SessionInfo[] }[] = [];
  for (const session of sessions) {
    const label = groupLabel(now, session.updated_at, locale);
    const last = groups.at(-1);
    if (last?.label === label) {
      last.sessions.push(session);
    } else {
      groups.push({ label, sessions: [session] });
    }
  }
  return groups;
}

/** What a chat is called. */
export const titleFor = (session: SessionInfo | undefined): string =>
  session?.title?.trim() || "Untitled chat";

/** Whether all words that are looked for begin or are within the title, accents and case aside. */
export function matches(session: SessionInfo, search: string): boolean {
  const title = plain(titleFor(session));
  return plain(search)
    .split(/\s+/)
    .every((word) => title.includes(word));
}

/** A text to compare: without accents, case and outer space. */
export const plain = (text: string): string =>
  text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();
