/** What parts know of the page around them. */
import type { InteractionPart, Message } from "midstream-client";
import { createContext, useContext } from "react";

/** What a part may ask of its session; a `Session` is one. */
export interface PartSession {
  approve(interactionId: string, reason?: string): Promise<InteractionPart>;
  deny(interactionId: string, reason?: string): Promise<InteractionPart>;
  answer(
    interactionId: string,
    answers: { readonly [questionId: string]: string | readonly string[] },
  ): Promise<InteractionPart>;
}

/** What a part may know beside its message. Keep it the same object while nothing of it changes. */
export interface Surroundings {
  /** The subject of this client (`WelcomeInfo.subject`): what it did itself is said of "You". */
  readonly subject?: string | undefined;
  /** Now by the server's clock, in ms since the epoch; without it this machine's clock is believed. */
  readonly now?: (() => number) | undefined;
  /** False where the reader may look, but not answer what is asked. */
  readonly canAnswer?: boolean | undefined;
  /** Try the turn of this message again; errors that are recoverable then offer it. */
  readonly onRetry?: ((message: Message) => void) | undefined;
}

const NONE: Surroundings = {};
const Context = createContext(NONE);

/** Tell the parts below what the page knows. */
export const PartSurroundings = Context.Provider;

export const useSurroundings = (): Surroundings => useContext(Context);
