import { MidstreamProvider } from "midstream-client/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.js";
import { makeClient } from "./app/client.js";
import { ErrorBoundary } from "./app/error_boundary.js";
import { applyTheme } from "./app/theme.js";
import "./styles/tokens.css";
import "./styles/base.css";

applyTheme();
const client = makeClient();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary>
        <MidstreamProvider client={client}>
          <App />
        </MidstreamProvider>
      </ErrorBoundary>
    </StrictMode>,
  );
}
