/** Inline Markdown that is cut anywhere: close what is open, and hold back what cannot be told yet. */
import { lastIndex } from "./leaf.js";

interface Opener {
  /** `*`, `_`, `~`, or the closing tag itself. */
  readonly mark: string;
  readonly at: number;
  /** How many of its marks are not used yet. */
  left: number;
  readonly count: number;
  readonly closes: boolean;
}

interface Scan {
  readonly text: string;
  readonly openers: Opener[];
  /** Where square brackets are open. */
  readonly brackets: number[];
  /** Where the text to be shown ends, if before its end. */
  end: number;
  /** Single characters that are written otherwise, or not at all. */
  readonly edits: Map<number, string>;
  /** What closes an open code span. */
  code: string;
}

const TRAILING = /(?:&#?\w{0,10}|<\/?[a-z]{0,7}|!)$/i;
const AUTOLINK = /^<(?:https?:|mailto:)[^\s<>]*$/i;
const OPEN_TAG = /^<(sub|sup|kbd|mark)>/i;
const CLOSE_TAG = /^<\/(sub|sup|kbd|mark)>/i;
const SPACE = /\s/u;
const PUNCTUATION = /[\p{P}\p{S}]/u;
/** An open bracket that is further back than this is not the begin of a link. */
const LINK_TEXT = 200;

/** The text with all that is open closed, so that it can be parsed as if it ended here. */
export function closed(text: string): string {
  const trailing = TRAILING.exec(text);
  const scan: Scan = {
    text: trailing ? text.slice(0, trailing.index) : text,
    openers: [],
    brackets: [],
    end: Number.POSITIVE_INFINITY,
    edits: new Map(),
    code: "",
  };
  for (let at = 0; at < scan.text.length && at < scan.end; ) {
    at = step(scan, at);
  }
  return scan.code ? written(scan, scan.text) : written(scan, scan.text.slice(0, bracketsLeft(scan)));
}

/** Look at the character at `at`, and return where to go on. */
function step(scan: Scan, at: number): number {
  const { text } = scan;
  switch (text[at]) {
    case "\\":
      return backslash(scan, at);
    case "`":
      return codeSpan(scan, at);
    case "<":
      return angle(scan, at);
    case "[":
      scan.brackets.push(at);
      return at + 1;
    case "]":
      return bracket(scan, at);
    case "*":
    case "_":
    case "~":
      return emphasis(scan, at);
    default:
      return at + 1;
  }
}

function backslash(scan: Scan, at: number): number {
  const { text } = scan;
  const next = text[at + 1];
  if (next === undefined) {
    scan.end = at;
  }
  if (next !== "(" && next !== "[") {
    return at + 2;
  }
  const end = text.indexOf(next === "(" ? "\\)" : "\\]", at + 2);
  if (end < 0) {
    scan.edits.set(at, "\\\\"); // a formula shows its backslash
    scan.end = text.endsWith("\\") ? text.length - 1 : text.length;
  }
  return end < 0 ? text.length : end + 2;
}

/** Where the run of one character ends. */
function runEnd(text: string, at: number): number {
  let end = at + 1;
  while (text[end] === text[at]) {
    end += 1;
  }
  return end;
}

function codeSpan(scan: Scan, at: number): number {
  const { text } = scan;
  const begin = runEnd(text, at);
  const marks = text.slice(at, begin);
  for (let next = text.indexOf("`", begin); next >= 0; ) {
    const end = runEnd(text, next);
    if (end - next === marks.length) {
      return end;
    }
    next = text.indexOf("`", end);
  }
  const inside = text.slice(begin).replace(/`+$/, "");
  if (inside.trim() === "") {
    scan.end = at;
  } else {
    scan.code = marks;
    scan.end = begin + inside.length;
  }
  return text.length;
}

function angle(scan: Scan, at: number): number {
  const rest = scan.text.slice(at, at + 2000);
  if (AUTOLINK.test(rest)) {
    scan.edits.set(at, "");
    return scan.text.length;
  }
  const opened = OPEN_TAG.exec(rest);
  if (opened) {
    const [tag, name = ""] = opened;
    scan.openers.push({ mark: `</${name}>`, at, left: 1, count: tag.length, closes: false });
    return at + tag.length;
  }
  const ended = CLOSE_TAG.exec(rest);
  if (ended) {
    const [tag] = ended;
    const opener = lastIndex(scan.openers, ({ mark }) => mark.toLowerCase() === tag.toLowerCase());
    if (opener >= 0) {
      scan.openers.splice(opener);
    }
    return at + tag.length;
  }
  return at + 1;
}

/** At a `]`: a link whose address is still open is shown by its text alone, an image not at all. */
function bracket(scan: Scan, at: number): number {
  const { text } = scan;
  const open = scan.brackets.pop();
  if (open === undefined) {
    return at + 1;
  }
  const next = text[at + 1];
  const begin = text[open - 1] === "!" ? open - 1 : open;
  if (next === undefined && begin === open && !beginsLink(text, open)) {
    scan.end = at;
    return text.length;
  }
  const end = next === "(" ? addressEnd(text, at + 2) : next === "[" ? text.indexOf("]", at + 2) + 1 : at + 1;
  if (end > 0 && next !== undefined) {
    return end;
  }
  if (begin < open) {
    scan.end = begin;
  } else {
    scan.end = at;
    scan.edits.set(open, "");
  }
  return text.length;
}

/** Whether a `[` stands where links begin, and not in a word. */
const beginsLink = (text: string, at: number): boolean =>
  at === 0 || /[\s\p{P}\p{S}]/u.test(text[at - 1] ?? "");

/** Behind the `)` that ends an address; 0 where it is still open. */
function addressEnd(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at];
    if (char === "\\") {
      at += 1;
    } else if (char === "(") {
      depth += 1;
    } else if (char === ")") {
      depth -= 1;
      if (depth === 0) {
        return at + 1;
      }
    }
  }
  return 0;
}

function emphasis(scan: Scan, at: number): number {
  const { text, openers } = scan;
  const mark = text[at] ?? "";
  const end = runEnd(text, at);
  const before = text[at - 1] ?? " ";
  const after = text[end] ?? " ";
  const left = !SPACE.test(after) && (!PUNCTUATION.test(after) || !/[^\s\p{P}\p{S}]/u.test(before));
  const right = !SPACE.test(before) && (!PUNCTUATION.test(before) || !/[^\s\p{P}\p{S}]/u.test(after));
  const opens = mark === "_" ? left && (!right || PUNCTUATION.test(before)) : left;
  const closes = mark === "_" ? right && (!left || PUNCTUATION.test(after)) : right;
  let count = end - at;
  if (mark === "~" && count !== 2) {
    if (end === text.length && count === 1) {
      scan.end = at;
    }
    return end;
  }
  while (closes && count > 0) {
    const found = lastIndex(
      openers,
      (other) =>
        other.mark === mark &&
        !((other.closes || opens) && (other.count + end - at) % 3 === 0 && (end - at) % 3 !== 0),
    );
    const opener = openers[found];
    if (!opener) {
      break;
    }
    const used = Math.min(count, opener.left, 2);
    opener.left -= used;
    count -= used;
    openers.splice(opener.left > 0 ? found + 1 : found);
  }
  const atWord = mark !== "*" || end - at > 1 || !/[\p{L}\p{N}]/u.test(before);
  if (count > 0 && (opens || end === text.length) && atWord) {
    openers.push({ mark, at: end - count, left: count, count: end - at, closes });
  }
  return end;
}

/** Brackets that never closed may still become links: they are not shown. Returns where an open image begins. */
function bracketsLeft(scan: Scan): number {
  const { text, brackets } = scan;
  let end = Math.min(scan.end, text.length);
  for (const at of brackets) {
    if (at >= end || text.length - at > LINK_TEXT) {
      continue;
    }
    if (text[at - 1] === "!") {
      end = Math.min(end, at - 1);
    } else if (beginsLink(text, at)) {
      scan.edits.set(at, "");
    }
  }
  return end;
}

/** The text that is shown, and behind it what closes it. */
function written(scan: Scan, text: string): string {
  let body = text.slice(0, scan.end);
  let from = body.length;
  const openers = scan.openers.filter(({ at }) => at < from);
  if (!scan.code) {
    // marks that nothing follows yet
    for (let trimmed = true; trimmed; ) {
      trimmed = false;
      while (from > 0 && (SPACE.test(body[from - 1] ?? "") || scan.edits.get(from - 1) === "")) {
        from -= 1;
      }
      const last = openers.at(-1);
      const width = last ? (last.mark.length > 1 ? last.count : last.left) : 0;
      if (last && last.at + width >= from) {
        from = last.at;
        openers.pop();
        trimmed = true;
      }
    }
    body = body.slice(0, from);
  }
  let shown = body;
  for (const [at, instead] of [...scan.edits].sort(([a], [b]) => b - a)) {
    if (at < body.length) {
      shown = shown.slice(0, at) + instead + shown.slice(at + 1);
    }
  }
  const closers = openers.reverse().map(({ mark, left }) => mark.repeat(left));
  return shown + scan.code + closers.join("");
}
