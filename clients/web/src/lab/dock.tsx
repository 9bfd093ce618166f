/** The link lab's place in the page: below the chat that it watches over. */
import { useSession } from "midstream-client/react";
import { type ReactNode, useEffect } from "react";
import type { Lab } from "./lab.js";
import { LabPanel } from "./panel.js";

interface DockProps {
  readonly lab: Lab;
  /** The chat that is shown; empty where there is none yet. */
  readonly sessionId: string;
}

export default function LabDock({ lab, sessionId }: DockProps): ReactNode {
  return (
    <>
      {sessionId ? <Following key={sessionId} lab={lab} sessionId={sessionId} /> : null}
      <LabPanel lab={lab} />
    </>
  );
}

function Following({ lab, sessionId }: DockProps): ReactNode {
  const { session } = useSession(sessionId);
  useEffect(() => lab.follow(session), [lab, session]);
  return null;
}
