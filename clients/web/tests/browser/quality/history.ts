/** A session with a past: a database into which `midstream import` read so many messages. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { PYTHON } from "../../../../typescript/tests/end_to_end/server.js";

const BEGAN_AT = Date.UTC(2026, 0, 5, 9);
const TURN_MS = 60_000;

const ANSWER = `An answer with *emphasis* and a [link](https://example.org), long enough to wrap:

\`\`\`python
def missed(log: list[str], seen: int) -> list[str]:
    return log[seen:]
\`\`\`

1. The keeper **reads** what came after it.
2. The boat has it \`all\`.`;

/** The lines of a session with `turns` prompts, each of them answered. */
function lines(sessionId: string, turns: number): unknown[] {
  const count = turns * 2;
  const times = { created_at: BEGAN_AT, updated_at: BEGAN_AT + turns * TURN_MS };
  const session = { session_id: sessionId, revision: turns * 2, message_count: count, ...times };
  const messages = Array.from({ length: count }, (_, index) => message(sessionId, index));
  return [
    { format: "midstream.session", format_version: 1, version: turns * 2, session },
    ...Array.from({ length: turns }, (_, index) => ({
      turn: {
        turn_id: `turn_${index}`,
        revision: index * 2 + 2,
        state: "completed",
        phase: "streaming",
        phase_since: BEGAN_AT + index * TURN_MS,
        started_at: BEGAN_AT + index * TURN_MS,
        finished_at: BEGAN_AT + index * TURN_MS + 5000,
      },
    })),
    ...messages.map((message) => ({ message })),
    { end: { turns, messages: count, summaries: 0, inputs: 0 } },
  ];
}

function message(sessionId: string, index: number): object {
  const turn = Math.floor(index / 2);
  const isUser = index % 2 === 0;
  const at = BEGAN_AT + turn * TURN_MS + (isUser ? 0 : 5000);
  const text = isUser ? `Prompt ${turn + 1}: what did I miss?` : ANSWER;
  const part = { type: "text", part_id: `part_${index}`, sequence: 1, text };
  return {
    message_id: `msg_${index}`,
    session_id: sessionId,
    turn_id: `turn_${turn}`,
    sequence: index + 1,
    revision: index + 1,
    role: isUser ? "user" : "agent",
    visibility: "visible",
    created_at: at,
    updated_at: at,
    ...(isUser ? { parts: [part] } : { state: "done", parts: [{ ...part, state: "done" }] }),
  };
}

/** A database on disk. */
export interface Past {
  /** Its file, for `midstream serve --database`. */
  readonly database: string;
  remove(): Promise<void>;
}

/** Make a database with these sessions, each of so many turns. */
export async function past(sessions: Readonly<Record<string, number>>): Promise<Past> {
  const folder = await mkdtemp(join(tmpdir(), "midstream-past-"));
  const database = join(folder, "past.db");
  for (const [sessionId, turns] of Object.entries(sessions)) {
    const file = join(folder, `${sessionId}.jsonl`);
    await writeFile(
      file,
      lines(sessionId, turns)
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(""),
    );
    await promisify(execFile)(PYTHON, ["-m", "midstream.cli", "import", database, file]);
  }
  return { database, remove: () => rm(folder, { recursive: true, force: true }) };
}
