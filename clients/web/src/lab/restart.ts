/** Killing the server from the page: only where it was started with `--lab`, on this machine. */

const PLACE = "/lab/restart";
/** No form and no page of another site can send it without being asked first. */
const HEADERS = { "X-Midstream-Lab": "restart" };

/** Whether this server lets the page kill it; one without the link lab answers with something else. */
export async function mayKillServer(): Promise<boolean> {
  try {
    const answer = await fetch("/lab", { cache: "no-store" });
    const said: unknown = await answer.json();
    return typeof said === "object" && said !== null && "restart" in said && said.restart === true;
  } catch {
    return false;
  }
}

/** Kill it, as `kill -9` does; it starts again by itself. Returns what stood against it. */
export async function killServer(): Promise<string | undefined> {
  try {
    const answer = await fetch(PLACE, { headers: HEADERS, cache: "no-store" });
    return answer.ok
      ? undefined
      : `The server did not do it (status ${answer.status}). Start it with: midstream serve --lab`;
  } catch (error) {
    const why = error instanceof Error ? error.message : error;
    return `The server could not be reached (${why}). Try again when it is back.`;
  }
}
