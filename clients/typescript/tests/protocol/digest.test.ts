/** Bytes and digests, held against what the platform and the protocol's own schema say. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isUnicode, utf8Length } from "../../src/protocol/bytes.js";
import { ChunkAssembler, chunks, sizeOf } from "../../src/protocol/chunks.js";
import { type Codec, JSON_CODEC, loadMsgpack } from "../../src/protocol/codec.js";
import { messageDigest } from "../../src/protocol/digest.js";
import { FORMS } from "../../src/protocol/forms.js";
import { type Chunk, readServerFrame } from "../../src/protocol/frames.js";
import type { Message } from "../../src/protocol/model.js";
import { sha256 } from "../../src/protocol/sha256.js";
import { utf8 } from "../../src/protocol/utf8.js";

const MSGPACK = await loadMsgpack();
const SCHEMA = JSON.parse(
  readFileSync(new URL("../../../../protocol/schema/model.json", import.meta.url), "utf8"),
) as { $defs: Record<string, { properties: Record<string, { enum?: string[] }> }> };

const texts = fc.string({ unit: "binary", maxLength: 300 });

test("SHA-256 is that of the platform, at every length around a block", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(sha256(bytes)).toBe(createHash("sha256").update(bytes).digest("hex"));
    }),
  );
});

test("UTF-8 is that of the platform, and its length too", () => {
  fc.assert(
    fc.property(texts, (text) => {
      const bytes = new TextEncoder().encode(text);
      expect(utf8(text)).toEqual(bytes);
      expect(utf8Length(text)).toBe(bytes.length);
      expect(isUnicode(text)).toBe(true);
      expect(isUnicode(`${text}\ud800`)).toBe(false);
    }),
  );
});

test.each([
  ["msgpack", MSGPACK],
  ["json", JSON_CODEC],
] as [string, Codec][])("what goes in chunks comes out whole, and no chunk is too long: %s", (_, codec) => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 64, max: 300 }), (text, chunkBytes) => {
      const payload = codec.encode(["call", 1, "prompt", { text }]);
      const assembler = new ChunkAssembler(10_000);
      const pieces = chunks(payload, 3, chunkBytes, codec);
      expect(pieces.every((piece) => sizeOf(piece) <= chunkBytes)).toBe(true);
      const read = pieces.map((piece) => assembler.feed(readServerFrame(codec.decode(piece)) as Chunk));
      expect(read.slice(0, -1).every((piece) => piece === undefined)).toBe(true);
      expect(read.at(-1)).toEqual(payload);
    }),
  );
});

/** The tables that a definition of the schema is written down in. */
const formsOf = (name: string): string[] => {
  const renamed: Record<string, string> = {
    InteractionRequest: "Request",
    QuestionOption: "Option",
    QuestionAnswer: "Answer",
    ApprovalResponse: "Response",
    QuestionResponse: "Response",
  };
  const { type } = SCHEMA.$defs[name]?.properties ?? {};
  return name.endsWith("Part") ? (type?.enum ?? []) : [renamed[name] ?? name];
};

test("the known fields of a message are those of the protocol's schema", () => {
  const known: Record<string, Set<string>> = {};
  for (const [name, { properties }] of Object.entries(SCHEMA.$defs)) {
    for (const form of formsOf(name)) {
      known[form] = new Set([...(known[form] ?? []), ...Object.keys(properties ?? {})]);
    }
  }
  for (const [form, table] of Object.entries(FORMS)) {
    const names = table.split(" ").map((field) => field.split(":")[0]);
    expect([form, [...names].sort()]).toEqual([form, [...(known[form] ?? [])].sort()]);
  }
  const parts = Object.keys(SCHEMA.$defs).filter(
    (name) => name.endsWith("Part") && name !== "Part" && name !== "UserPart",
  );
  expect(parts.flatMap(formsOf).every((type) => type in FORMS)).toBe(true);
});

test("fields of a newer server are in no digest, however deep they are", () => {
  const message: Message = {
    message_id: "m",
    session_id: "s",
    sequence: 1,
    revision: 1,
    role: "agent",
    visibility: "visible",
    created_at: 1,
    updated_at: 1,
    state: "done",
    parts: [
      { type: "data", part_id: "p", sequence: 1, data_type: "d", data: { anything: [1] } },
      {
        type: "interaction",
        part_id: "q",
        sequence: 2,
        interaction_id: "i",
        interaction_type: "question",
        status: "pending",
        request: { title: "?", questions: [{ question_id: "a", question: "?", options: [{ value: "x" }] }] },
      },
    ],
  };
  const newer = JSON.parse(
    JSON.stringify(message)
      .replace('"state":"done"', '"state":"done","mood":"fine"')
      .replace('"value":"x"', '"value":"x","colour":"red"')
      .replace('"data_type"', '"weight":1,"data_type"'),
  ) as Message;
  expect(newer).not.toEqual(message);
  expect(messageDigest(newer)).toBe(messageDigest(message));
  const other = JSON.parse(JSON.stringify(message).replace('"anything"', '"something"')) as Message;
  expect(messageDigest(other)).not.toBe(messageDigest(message));
});
