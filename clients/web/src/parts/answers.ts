/** Answers to questions, as they are given and before they are sent (SPEC 8.6). */
import type { Question, QuestionAnswer } from "midstream-client";
import { own } from "../own.js";

/** What a person has entered so far, by question. */
export type Draft = { readonly [questionId: string]: string | readonly string[] };

/** What can be sent, or what is missing, by question. */
export type Checked =
  | { readonly answers: Draft; readonly problems?: undefined }
  | { readonly answers?: undefined; readonly problems: { readonly [questionId: string]: string } };

/** Where a question has nothing entered: nothing, and no choice. */
export const empty = (question: Question): string | readonly string[] => (question.multiple ? [] : "");

/** Check a draft as the server will: one value for each question, and of options only theirs. */
export function checked(questions: readonly Question[], draft: Draft): Checked {
  const answers = Object.create(null) as { [questionId: string]: string | readonly string[] };
  const problems = Object.create(null) as { [questionId: string]: string };
  for (const question of questions) {
    const given = own(draft, question.question_id) ?? empty(question);
    const values = question.options?.map(({ value }) => value);
    const chosen = typeof given === "string" ? [given] : given;
    if (values && !question.multiple && given === "" && !values.includes("")) {
      problems[question.question_id] = "Choose one.";
    } else if (values && !chosen.every((value) => values.includes(value))) {
      problems[question.question_id] = "Choose from the list.";
    } else if (question.multiple && !values) {
      answers[question.question_id] = chosen.map((line) => line.trim()).filter(Boolean);
    } else {
      answers[question.question_id] = given;
    }
  }
  return Object.keys(problems).length > 0 ? { problems } : { answers };
}

/** An answer in the words of its question: the labels of what was chosen. */
export function inWords(question: Question, answer: QuestionAnswer | undefined): string {
  const values = answer === undefined ? [] : typeof answer.value === "string" ? [answer.value] : answer.value;
  const label = (value: string) => question.options?.find((option) => option.value === value)?.label ?? value;
  return values.map(label).join(", ");
}
