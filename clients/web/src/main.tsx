import { browserEnvironment } from "midstream-client/browser";
import { MidstreamProvider } from "midstream-client/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { makeClient, serverUrl } from "./app/client.js";
import { ErrorBoundary } from "./app/error_boundary.js";
import { forgetNoted, forgetWithOthers } from "./app/forgetting.js";
import { learnIdentity } from "./app/rights.js";
import { applyTheme } from "./app/theme.js";
import { App } from "./frame/app.js";
import "./styles/tokens.css";
import "./styles/base.css";

applyTheme();
await forgetNoted();
forgetWithOthers();
const lab = await askedForLab();
const client = makeClient(lab?.clientOptions);
learnIdentity(client);
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary>
        <MidstreamProvider client={client}>
          <App lab={lab} />
        </MidstreamProvider>
      </ErrorBoundary>
    </StrictMode>,
  );
}

/** The link lab, where the address asks for it by `?lab`: nobody else loads it. */
async function askedForLab() {
  if (!new URLSearchParams(location.search).has("lab")) {
    return undefined;
  }
  const { Lab } = await import("./lab/lab.js");
  return Lab.open(serverUrl(), browserEnvironment());
}
