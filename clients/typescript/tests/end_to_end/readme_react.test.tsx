// @vitest-environment happy-dom
/** The README's examples with React are files, and they work. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { act, fireEvent, waitFor } from "@testing-library/react";
import type { ReactElement } from "react";
import { describe, expect, test } from "vitest";
import { AiSdkChat } from "../../examples/ai_sdk.js";
import { AssistantUiChat } from "../../examples/assistant_ui.js";
import { App } from "../../examples/chat.js";
import { open, withServer } from "../adapters/page.js";
import { hasServer } from "./server.js";

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "../..");

test.each(["chat.tsx", "ai_sdk.tsx", "assistant_ui.tsx"])("the README shows %s as it is", (name) => {
  const read = (path: string) => readFileSync(join(PACKAGE, path), "utf8");
  expect(read("README.md")).toContain(read(join("examples", name)).trim());
});

describe.skipIf(!hasServer)("each example", { timeout: 60_000 }, () => {
  const server = withServer(0);

  test.each<[string, (client: ReturnType<typeof server.device>) => ReactElement]>([
    ["with hooks", (client) => <App client={client} />],
    ["with the AI SDK", () => <AiSdkChat id="sdk" />],
    ["with assistant-ui", () => <AssistantUiChat id="aui" />],
  ])("%s gets an answer", async (_, page) => {
    const client = server.device();
    const { container, getByLabelText } = open(client, page(client));
    const input = getByLabelText("Message");
    fireEvent.change(input, { target: { value: "hello there" } });
    await act(async () => {
      fireEvent.submit(input.closest("form") ?? input);
    });
    await waitFor(() => expect(container.textContent).toContain("said “hello there”"));
  });
});
