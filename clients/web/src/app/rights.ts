/** What the reader may do, by the scopes of their token (SPEC 10.5). */
import type { Client } from "midstream-client";
import { useConnection } from "midstream-client/react";
import { forgetReader } from "./forgetting.js";
import { identity, NOBODY, remember } from "./identity.js";

/** Said where something cannot be done. */
export const ONLY_READS = "Your token lets you read only";

/** Whether the reader may write, as far as is known: without a connection, as the server last said it. */
export function useCanWrite(): boolean {
  const scopes = useConnection().welcome?.scopes ?? identity().scopes;
  return scopes?.includes("write") ?? true;
}

/** Who the reader is, where somebody in particular: then they can be forgotten. */
export function useReader(): { readonly name: string; forget(): void } | undefined {
  const subject = useConnection().welcome?.subject ?? identity().subject;
  return identity().token === null && subject === NOBODY.subject
    ? undefined
    : { name: subject, forget: forgetReader };
}

/** Learn from the server who the reader is, and what they may. */
export function learnIdentity(client: Client): () => void {
  return client.subscribe(() => {
    const { error, welcome } = client;
    const { token, subject } = identity();
    if (error?.code === "another_subject") {
      // a server may know its users otherwise than by tokens: then this is how the page learns it
      if (remember({ token, subject: String(error.details.subject) }) && subject === NOBODY.subject) {
        location.reload();
      }
    } else if (welcome && welcome.scopes.join() !== identity().scopes?.join()) {
      remember({ token, subject, scopes: welcome.scopes });
    }
  });
}
