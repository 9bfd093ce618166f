/** Ids that this page chooses: random, so that nobody else chooses them (SPEC 2.1). */
export function newId(kind: "chat" | "file" | "msg"): string {
  const digits = [...crypto.getRandomValues(new Uint32Array(4))].map((one) => one.toString(36));
  return `${kind}_${digits.join("")}`;
}
