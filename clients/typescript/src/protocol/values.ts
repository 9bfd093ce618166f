/** What the protocol carries, and what it does not (SPEC 2.1). */
import { isUnicode } from "./bytes.js";
import { invalid, type MidstreamError } from "./errors.js";

/** Return why a value cannot be sent, with the path of what is wrong; undefined where nothing is. */
export function problemIn(value: unknown, nesting: number, path = ""): MidstreamError | undefined {
  switch (typeof value) {
    case "string":
      return isUnicode(value) ? undefined : invalid(path, "holds half a code point");
    case "number":
      return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))
        ? undefined
        : invalid(path, "is no number that is carried: integers are below 2^53, others finite");
    case "boolean":
    case "undefined":
      return undefined;
    case "object":
      break;
    default:
      return invalid(path, `is a ${typeof value}, which is not carried`);
  }
  if (value === null) {
    return undefined;
  }
  if (nesting < 1) {
    return invalid(path, "is nested too deep");
  }
  for (const [name, item] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : path ? `${path}.${name}` : name;
    const problem = problemIn(name, 1, at) ?? problemIn(item, nesting - 1, at);
    if (problem) {
      return problem;
    }
  }
  return undefined;
}
