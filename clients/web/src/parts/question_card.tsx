import type { InteractionPart, Question } from "midstream-client";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";
import { own } from "../own.js";
import { checked, type Draft, inWords } from "./answers.js";
import { Asked, OnlyReads, Problem } from "./approval_card.js";
import controls from "./buttons.module.css";
import styles from "./interaction.module.css";
import { QuestionField } from "./question_field.js";
import type { PartSession } from "./surroundings.js";
import { useSurroundings } from "./surroundings.js";
import { Countdown } from "./times.js";
import { useAnswer } from "./use_answer.js";
import { forget, useKept } from "./use_kept.js";

const NO_QUESTIONS: readonly Question[] = [];
const NO_PROBLEMS: { readonly [questionId: string]: string } = {};

/** Ask questions. What was entered is kept while the card is out of view. */
export function QuestionCard({
  part,
  session,
}: {
  readonly part: InteractionPart;
  readonly session: PartSession;
}) {
  const { subject, canAnswer = true } = useSurroundings();
  const { what, problem, send } = useAnswer(subject);
  const key = `draft ${part.interaction_id}`;
  const [draft, setDraft] = useKept<Draft>(key, {});
  const [problems, setProblems] = useState(NO_PROBLEMS);
  const form = useRef<HTMLFormElement>(null);
  const { title, description, questions = NO_QUESTIONS, expires_at } = part.request;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const result = checked(questions, draft);
    setProblems(result.problems ?? NO_PROBLEMS);
    if (result.answers) {
      const { answers } = result;
      send("answer", async () => {
        await session.answer(part.interaction_id, answers);
        forget(key);
      });
    } else {
      const first = questions.findIndex(({ question_id }) => question_id in result.problems);
      form.current
        ?.querySelectorAll("fieldset")
        [first]?.querySelector<HTMLElement>("input, textarea")
        ?.focus();
    }
  };
  if (!canAnswer) {
    return (
      <div className={styles.ask}>
        <Asked title={title} description={description} />
        <ul>
          {questions.map((question) => (
            <li key={question.question_id} dir="auto">
              {question.question}
            </li>
          ))}
        </ul>
        <OnlyReads />
      </div>
    );
  }
  return (
    <form ref={form} className={styles.ask} onSubmit={onSubmit} onKeyDown={submitOnEnter} noValidate>
      <Asked title={title} description={description} />
      {questions.map((question) => (
        <QuestionField
          key={question.question_id}
          question={question}
          value={own(draft, question.question_id)}
          problem={own(problems, question.question_id)}
          onChange={(value) => {
            const { [question.question_id]: _solved, ...others } = problems;
            setProblems(others);
            setDraft({ ...draft, [question.question_id]: value });
          }}
        />
      ))}
      <div className={styles.buttons}>
        <button type="submit" className={controls.solid} aria-disabled={what !== ""}>
          {what ? "Sending…" : questions.length > 1 ? "Send answers" : "Send answer"}
        </button>
        {expires_at === undefined ? null : (
          <span className={styles.expiry}>
            <Countdown until={expires_at} />
          </span>
        )}
      </div>
      <Problem text={problem} />
    </form>
  );
}

/** In a text of several lines, Enter alone makes a line. */
function submitOnEnter(event: KeyboardEvent<HTMLFormElement>): void {
  if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
    event.preventDefault();
    event.currentTarget.requestSubmit();
  }
}

/** The questions with what was answered. */
export function Answers({ part }: { readonly part: InteractionPart }) {
  const { response, request } = part;
  const answers = response?.kind === "question" ? response.answers : [];
  return (
    <dl className={styles.answers}>
      {(request.questions ?? NO_QUESTIONS).map((question) => {
        const answer = answers.find(({ question_id }) => question_id === question.question_id);
        return (
          <div key={question.question_id}>
            <dt dir="auto">{question.question}</dt>
            <dd dir="auto">{inWords(question, answer) || <span className={styles.nothing}>nothing</span>}</dd>
          </div>
        );
      })}
    </dl>
  );
}
