/** Messages and sessions to test with, as a server would give them. */
import type { Message, Part, SessionInfo, Turn } from "midstream-client";

export const NOON = new Date(2026, 4, 20, 12).getTime();

export function message(sequence: number, more: Partial<Message> = {}): Message {
  const role = more.role ?? (sequence % 2 ? "user" : "agent");
  return {
    message_id: `message ${sequence}`,
    session_id: "session",
    turn_id: `turn ${Math.ceil(sequence / 2)}`,
    sequence,
    revision: sequence,
    role,
    visibility: "visible",
    created_at: NOON,
    updated_at: NOON,
    parts: [text(`text ${sequence}`)],
    ...(role === "agent" ? { state: "done" as const } : {}),
    ...more,
  };
}

export const text = (value: string, sequence = 1): Part => ({
  type: "text",
  part_id: `part ${sequence}`,
  sequence,
  text: value,
});

export const session = (id: string, more: Partial<SessionInfo> = {}): SessionInfo => ({
  session_id: id,
  revision: 1,
  created_at: NOON,
  updated_at: NOON,
  message_count: 0,
  ...more,
});

export const turn = (id: string, more: Partial<Turn> = {}): Turn => ({
  turn_id: id,
  revision: 1,
  state: "running",
  phase: "starting",
  phase_since: NOON,
  started_at: NOON,
  ...more,
});
