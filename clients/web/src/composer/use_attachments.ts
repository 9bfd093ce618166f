/** The files that go with the next message. */
import { useConnection } from "midstream-client/react";
import { useCallback, useRef, useState } from "react";
import { newId } from "../app/ids.js";
import { type Attachment, readAttachment, refusal, roomLeft } from "./attachments.js";

interface Attachments {
  readonly all: readonly Attachment[];
  /** Why the last files were not taken. */
  readonly problem: string | undefined;
  add(files: readonly File[]): Promise<void>;
  remove(id: string): void;
  /** Take all away, to send them. */
  take(): readonly Attachment[];
  /** Put back what could not be sent. */
  give(back: readonly Attachment[]): void;
}

const encoder = new TextEncoder();

/** What a server takes by default, until this one says what it takes. */
const FRAME_BYTES = 1_048_576;

/** Files for a message with this text: as many as fit into one frame. */
export function useAttachments(text: string): Attachments {
  const frameBytes = useConnection().welcome?.limits.frame_bytes ?? FRAME_BYTES;
  const [all, setAll] = useState<readonly Attachment[]>([]);
  const [problem, setProblem] = useState<string>();
  const held = useRef(all);
  const set = useCallback((next: readonly Attachment[]) => {
    held.current = next;
    setAll(next);
  }, []);
  const add = async (files: readonly File[]) => {
    const problems: string[] = [];
    for (const file of files) {
      const room = roomLeft(frameBytes, encoder.encode(text).length, held.current);
      const refused = refusal(file, room);
      if (refused) {
        problems.push(refused);
        continue;
      }
      try {
        const read = await readAttachment(file, newId("file"));
        set([...held.current, read]);
      } catch {
        problems.push(`The browser could not read ${file.name}. Choose it again.`);
      }
    }
    setProblem(problems.join(" ") || undefined);
  };
  return {
    all,
    problem,
    add,
    remove: (id) => {
      set(held.current.filter((one) => one.id !== id));
      setProblem(undefined);
    },
    take: () => {
      const taken = held.current;
      set([]);
      setProblem(undefined);
      return taken;
    },
    give: (back) => set([...back, ...held.current]),
  };
}
