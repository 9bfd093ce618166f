/** What can be done to a chat from anywhere: the list, the palette, its own menu. */
import type { Client, Session } from "midstream-client";
import { confirmed } from "./dialog.js";
import { attempt } from "./errors.js";
import { forgetFresh } from "./fresh.js";
import { notify } from "./notice.js";
import { chatPath, currentRoute, navigate } from "./route.js";

/** Act on a chat that may not be open here; it is closed again where nobody else wants it. */
async function withSession<T>(client: Client, sessionId: string, act: (session: Session) => Promise<T>) {
  const session = client.open(sessionId);
  try {
    return await act(session);
  } finally {
    if (session.asked === 1) {
      session.close();
    }
  }
}

const isShown = (sessionId: string): boolean => {
  const route = currentRoute();
  return route.kind === "chat" && route.sessionId === sessionId;
};

export const rename = (client: Client, sessionId: string, title: string): Promise<unknown> =>
  attempt("rename the chat", () => {
    forgetFresh(sessionId);
    return withSession(client, sessionId, (session) => session.update({ title: title.trim() || null }));
  });

export async function archive(client: Client, sessionId: string, archived: boolean): Promise<void> {
  const what = archived ? "archive the chat" : "restore the chat";
  const info = await attempt(what, () =>
    withSession(client, sessionId, (session) => session.archive(archived)),
  );
  if (info) {
    notify({ text: archived ? "Moved to Archived." : "Restored.", tone: "ok" });
  }
}

export async function remove(client: Client, sessionId: string, title: string): Promise<void> {
  const yes = await confirmed({
    title: `Delete “${title}”?`,
    text: "It is deleted for everybody, with all its messages, and cannot be brought back.",
    action: "Delete",
    isDanger: true,
  });
  if (!yes) {
    return;
  }
  const isGone = await attempt("delete the chat", async () => {
    await withSession(client, sessionId, (session) => session.delete());
    return true;
  });
  if (isGone) {
    if (isShown(sessionId)) {
      navigate("/", "replace");
    }
    notify({ text: "Deleted.", tone: "plain" });
  }
}

export async function clear(session: Session): Promise<void> {
  const yes = await confirmed({
    title: "Remove all messages?",
    text: "The chat stays, with its title, but everything that was said in it is deleted for everybody.",
    action: "Remove all",
    isDanger: true,
  });
  if (yes) {
    await attempt("remove the messages", () => session.clear());
  }
}

export async function copy(session: Session): Promise<void> {
  const made = await attempt("copy the chat", () => session.fork());
  if (made) {
    navigate(chatPath(made.sessionId));
    notify({ text: "This is a copy. The original stays as it is.", tone: "ok" });
  }
}

export async function allowAlways(session: Session): Promise<void> {
  const yes = await confirmed({
    title: "Allow everything in this chat?",
    text:
      "The agent will no longer ask before it acts, and what waits for approval now is approved. " +
      "This holds for everybody in this chat until somebody changes it back.",
    action: "Allow everything",
    isDanger: true,
  });
  if (yes) {
    await attempt("change how approvals are given", () => session.setApprovalMode("always-allow"));
  }
}

export const askAgain = (session: Session): Promise<unknown> =>
  attempt("change how approvals are given", () => session.setApprovalMode("ask"));

/** Compare the page with the server, message by message, and say what came of it. */
export async function verify(session: Session): Promise<void> {
  const report = await attempt("check this page", () => session.verify());
  if (!report) {
    return;
  }
  const count = `${report.compared} ${report.compared === 1 ? "message" : "messages"}`;
  if (report.isEqual) {
    notify({ text: `Checked ${count} by digest: this page equals the server.`, tone: "ok" });
  } else {
    const where = report.differences.map((one) => one.sequence).join(", ");
    const text = `${report.differences.length} of ${count} differ from the server (number ${where}). Reload the page.`;
    notify({ text, tone: "danger" });
  }
}

export const stop = (session: Session): Promise<unknown> =>
  attempt("stop the answer", () => session.stop("current", "none"));
