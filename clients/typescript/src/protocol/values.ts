/** What the protocol does not carry (SPEC 2.1). */
import { isUnicode } from "./bytes.js";
import { invalid, type MidstreamError } from "./errors.js";

const isCarried = (value: unknown): boolean => {
  switch (typeof value) {
    case "string":
      return isUnicode(value);
    case "number":
      return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
    default:
      return ["boolean", "undefined", "object"].includes(typeof value);
  }
};

/** Return why a value cannot be sent, with the name of the field at fault; undefined where nothing is. */
export function problemIn(value: unknown): MidstreamError | undefined {
  let wrong: string | undefined;
  try {
    JSON.stringify(value, (name, item: unknown) => {
      if (!isUnicode(name) || !isCarried(item)) {
        wrong ??= name;
        return null;
      }
      return item;
    });
  } catch {
    wrong ??= ""; // it holds itself
  }
  return wrong === undefined ? undefined : invalid(wrong, "holds what is not carried");
}
