/** The shared vectors: what any implementation of SPEC.md must pass. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Value } from "../../src/protocol/model.js";

const FOLDER = fileURLToPath(new URL("../../../../protocol/vectors/", import.meta.url));

export interface File<Case> {
  readonly about: string;
  readonly given?: Record<string, Value[]>;
  readonly cases: (Case & { readonly name: string })[];
}

export const load = <Case>(file: string): File<Case> =>
  JSON.parse(readFileSync(FOLDER + file, "utf8")) as File<Case>;

export const files = (): string[] => readdirSync(FOLDER).filter((name) => name.endsWith(".json"));

export const fromHex = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));

export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** The JSON value with its `$bytes` as bytes. */
export function withBytes(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(withBytes);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const entries = Object.entries(value);
  if (entries.length === 1 && entries[0]?.[0] === "$bytes") {
    return fromHex(String(entries[0][1]));
  }
  return Object.fromEntries(entries.map(([key, item]) => [key, withBytes(item)]));
}
