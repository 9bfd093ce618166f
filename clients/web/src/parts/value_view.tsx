import type { Value, ValueMap } from "midstream-client";
import { memo, useState } from "react";
import { CodeChunk, CodeChunks } from "../markdown/code_chunk.js";
import { useColours } from "../markdown/colouring.js";
import { CopyButton } from "../markdown/copy_button.js";
import { inOrder } from "../markdown/in_order.js";
import { size } from "./amounts.js";
import styles from "./value_view.module.css";

/** What is longer is cut, until a person asks for all of it. */
const SHORT = 4000;
const SHORT_LINES = 40;
const FIELDS = 8;
const FIELD_LENGTH = 200;

type Scalar = null | boolean | number | string;

const isScalar = (value: Value): value is Scalar => value === null || typeof value !== "object";
const isMap = (value: Value): value is ValueMap => !isScalar(value) && !Array.isArray(value);

/** A value in words: a list of plain ones is read as one line. */
const spoken = (value: Value): string =>
  Array.isArray(value) ? value.map(String).join(", ") : value === null ? "none" : String(value);

/** The fields of a small flat map, which reads better as a list; undefined for everything else. */
function fieldsOf(value: Value): readonly (readonly [string, string])[] | undefined {
  if (!isMap(value)) {
    return undefined;
  }
  const entries = Object.entries(value);
  const flat = entries.every(
    ([, field]) =>
      isScalar(field) || (Array.isArray(field) && field.every((item) => isScalar(item as Value))),
  );
  const fields = entries.map(([name, field]) => [name, spoken(field)] as const);
  const short = fields.every(([, text]) => text.length <= FIELD_LENGTH && !text.includes("\n"));
  return flat && short && fields.length > 0 && fields.length <= FIELDS ? fields : undefined;
}

/** In one line, for a row that is folded. */
export function summaryOf(value: Value | undefined): string {
  if (value === undefined || value === null) {
    return "";
  }
  if (isMap(value)) {
    const shown = Object.values(value).filter((field) => isScalar(field) && field !== "" && field !== null);
    return shown.map(spoken).join(" · ").replace(/\s+/g, " ").slice(0, 200);
  }
  return (isScalar(value) ? String(value) : JSON.stringify(value)).replace(/\s+/g, " ").slice(0, 200);
}

/** The whole value as text. */
export const textOf = (value: Value): string =>
  typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "");

/** Draw any value: a small one as a list of fields, others as text or JSON. */
export const ValueView = memo(function ValueView({
  name,
  value,
}: {
  readonly name: string;
  readonly value: Value;
}) {
  const fields = fieldsOf(value);
  return (
    <div className={styles.value}>
      <div className={styles.head}>
        <span>{name}</span>
        <CopyButton text={() => textOf(value)} what={name.toLowerCase()} />
      </div>
      {fields ? (
        <dl className={styles.fields}>
          {fields.map(([field, text]) => (
            <div key={field}>
              <dt>{field}</dt>
              <dd dir="auto">{text}</dd>
            </div>
          ))}
        </dl>
      ) : (
        <LongText text={textOf(value)} language={typeof value === "string" ? "" : "json"} growing={false} />
      )}
    </div>
  );
});

/** Text in a box, cut while it is long and nobody asked for more. */
export function LongText({
  text,
  language,
  growing,
}: {
  readonly text: string;
  readonly language: string;
  readonly growing: boolean;
}) {
  const [splitter] = useState(() => new CodeChunks());
  const [whole, setWhole] = useState(false);
  const end = whole || growing ? text.length : cutAt(text);
  const shown = text.slice(0, end);
  const colours = useColours(shown, language, growing);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <div className={styles.box} tabIndex={0}>
        <pre dir={language ? "ltr" : "auto"}>
          {inOrder(splitter.of(shown), (chunk, index) => (
            <CodeChunk text={chunk} colours={colours[index]} />
          ))}
        </pre>
      </div>
      {end < text.length ? (
        <button type="button" className={styles.more} onClick={() => setWhole(true)}>
          Show all ({size(text.length)})
        </button>
      ) : null}
    </>
  );
}

function cutAt(text: string): number {
  let end = 0;
  for (let line = 0; line < SHORT_LINES && end >= 0; line += 1) {
    end = text.indexOf("\n", end) + 1 || -1;
  }
  const lines = end < 0 ? text.length : end - 1;
  const most = Math.min(lines, SHORT);
  return text.length - most < SHORT / 10 ? text.length : most;
}
