/** The vectors of the list of sessions (SPEC 4.8), over a scripted socket. */
import { expect, test } from "vitest";
import { watchSessions } from "../../src/sessions.js";
import { Stage, settle } from "../client/stage.js";
import { load } from "./vectors.js";

type Sessions = Record<string, unknown>[];

interface Step {
  readonly answer?: Sessions;
  readonly frame?: Record<string, unknown>;
  readonly asks_again?: boolean;
  readonly lost?: true;
  readonly ask?: "page";
  readonly page?: Sessions;
}

interface List {
  readonly archived?: boolean;
  readonly steps: readonly Step[];
  readonly expect: readonly (readonly [string, number])[];
}

test.each(load<List>("lists.json").cases)("$name", async (given) => {
  const stage = new Stage();
  const list = watchSessions(stage.client(), { archived: given.archived ?? false });
  await settle();
  stage.socket.welcome();
  await settle();
  const hasPages = given.steps.some(({ page }) => page);
  const result = (items: Sessions) => ({ items, ...(hasPages && { next_after: "next" }) });
  const asked = () => stage.socket.calls("sessions.watch").length;
  let loading: Promise<boolean> | undefined;
  for (const step of given.steps) {
    const before = asked();
    if (step.answer) {
      stage.socket.answer("sessions.watch", result(step.answer));
    } else if (step.frame) {
      stage.socket.say("sessions", step.frame);
      expect(asked() - before).toBe(step.asks_again ? 1 : 0);
    } else if (step.lost) {
      stage.socket.end();
      await stage.advance(1000);
      stage.socket.welcome();
    } else if (step.ask) {
      loading = list.loadMore();
    } else {
      stage.socket.answer("sessions.list", result(step.page ?? []));
      expect(await loading).toBeTypeOf("boolean");
    }
    await settle();
  }
  expect(list.items.map(({ session_id, revision }) => [session_id, revision])).toEqual(given.expect);
});
