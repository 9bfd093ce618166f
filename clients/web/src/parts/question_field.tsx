import type { Question, QuestionOption } from "midstream-client";
import { useId } from "react";
import { empty } from "./answers.js";
import controls from "./buttons.module.css";
import styles from "./interaction.module.css";

interface FieldProps {
  readonly question: Question;
  readonly value: string | readonly string[] | undefined;
  readonly problem: string | undefined;
  readonly onChange: (value: string | readonly string[]) => void;
}

/** One question: a choice, several choices, or text. */
export function QuestionField({ question, value, problem, onChange }: FieldProps) {
  const name = useId();
  const problemId = `${name}problem`;
  const given = value ?? empty(question);
  return (
    <fieldset className={styles.question} aria-describedby={problem ? problemId : undefined}>
      <legend dir="auto">{question.question}</legend>
      {question.options ? (
        <div
          className={styles.options}
          data-columns={question.options.length % 3 === 0 ? 3 : 2}
          data-short={areShort(question.options)}
        >
          {question.options.map((option) => (
            <Choice
              key={option.value}
              name={name}
              option={option}
              multiple={question.multiple ?? false}
              chosen={typeof given === "string" ? given === option.value : given.includes(option.value)}
              invalid={problem !== undefined}
              onChange={(chosen) => onChange(changed(question, given, option.value, chosen))}
            />
          ))}
        </div>
      ) : (
        <textarea
          className={controls.field}
          aria-label={question.question}
          aria-invalid={problem !== undefined}
          dir="auto"
          rows={question.multiple ? 3 : 1}
          placeholder={question.multiple ? "One answer a line" : undefined}
          value={typeof given === "string" ? given : given.join("\n")}
          onChange={({ target }) => onChange(question.multiple ? target.value.split("\n") : target.value)}
        />
      )}
      {problem ? (
        <p id={problemId} className={styles.problem}>
          {problem}
        </p>
      ) : null}
    </fieldset>
  );
}

/** Whether options fit beside each other on a phone. */
const areShort = (options: readonly QuestionOption[]): boolean =>
  options.every(({ value, label, description }) => !description && (label ?? value).length <= 12);

/** What is chosen after a change of one option: several in the order of the options. */
function changed(
  question: Question,
  given: string | readonly string[],
  value: string,
  chosen: boolean,
): string | readonly string[] {
  if (!question.multiple || typeof given === "string") {
    return value;
  }
  const all = (question.options ?? []).map((option) => option.value);
  return all.filter((other) => (other === value ? chosen : given.includes(other)));
}

interface ChoiceProps {
  readonly name: string;
  readonly option: QuestionOption;
  readonly multiple: boolean;
  readonly chosen: boolean;
  readonly invalid: boolean;
  readonly onChange: (chosen: boolean) => void;
}

function Choice({ name, option, multiple, chosen, invalid, onChange }: ChoiceProps) {
  return (
    <label className={styles.option}>
      <input
        type={multiple ? "checkbox" : "radio"}
        name={name}
        value={option.value}
        checked={chosen}
        aria-invalid={invalid}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span className={styles.optionText} dir="auto">
        <span>{option.label ?? option.value}</span>
        {option.description ? <span className={styles.optionMore}>{option.description}</span> : null}
      </span>
    </label>
  );
}
