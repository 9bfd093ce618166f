/** The panel of the link lab: what can be done to the link, and what it cost. */
import { FlaskConical, Power, Scissors, Snowflake, Unplug } from "lucide-react";
import { type ReactNode, useEffect, useId, useState, useSyncExternalStore } from "react";
import type { Incident } from "./incidents.js";
import type { Lab, LabView } from "./lab.js";
import styles from "./panel.module.css";
import { killServer, mayKillServer } from "./restart.js";

const DELAYS = [0, 100, 500, 2000];
const FAULTS = {
  cut: "Link cut",
  frozen: "Link frozen",
  dropped: "Socket dropped",
  restarted: "Server killed",
  lost: "Connection lost",
};
const MODES = {
  replay: "replay: only what was missed",
  catchup: "catch-up: what changed, whole",
  reset: "reset: read anew",
  late: "nothing lost, only late",
};

export function LabPanel({ lab }: { readonly lab: Lab }): ReactNode {
  const view = useSyncExternalStore(
    (listener) => lab.subscribe(listener),
    () => lab.view,
  );
  const title = useId();
  return (
    <section className={styles.panel} aria-labelledby={title}>
      <header className={styles.head}>
        <FlaskConical size={16} strokeWidth={1.75} aria-hidden />
        <h2 id={title}>Link lab</h2>
        <Ends view={view} />
      </header>
      <p className={styles.lead}>
        Break the link while an answer streams. A second reader stays connected; what it gets meanwhile is
        what this page missed.
      </p>
      <Controls lab={lab} view={view} />
      <Log view={view} />
    </section>
  );
}

function Ends({ view }: { readonly view: LabView }): ReactNode {
  const { pageVersion, controlVersion = 0 } = view;
  if (pageVersion === undefined) {
    return null;
  }
  const behind = controlVersion - pageVersion;
  return (
    <output className={behind > 0 ? styles.behind : styles.level} aria-live="off">
      {behind > 0 ? `${behind} versions behind` : `at version ${pageVersion}`}
    </output>
  );
}

function Controls({ lab, view }: { readonly lab: Lab; readonly view: LabView }): ReactNode {
  const { isCut, isFrozen, delayMs } = view.faults;
  const delay = useId();
  return (
    <div className={styles.controls}>
      <button
        type="button"
        title="Connections are lost, and new ones find nobody"
        aria-pressed={isCut}
        onClick={() => lab.cut(!isCut)}
      >
        <Scissors size={16} strokeWidth={1.75} aria-hidden /> {isCut ? "Restore the link" : "Cut the link"}
      </button>
      <button
        type="button"
        title="Sockets stay open, but nothing passes: a phone in a tunnel"
        aria-pressed={isFrozen}
        onClick={() => lab.freeze(!isFrozen)}
      >
        <Snowflake size={16} strokeWidth={1.75} aria-hidden /> {isFrozen ? "Thaw" : "Freeze"}
      </button>
      <button
        type="button"
        title="The connection is lost once; the next one works"
        disabled={isCut || isFrozen}
        onClick={() => lab.drop()}
      >
        <Unplug size={16} strokeWidth={1.75} aria-hidden /> Drop the socket
      </button>
      <KillButton lab={lab} />
      <label htmlFor={delay}>
        Delay
        <select id={delay} value={delayMs} onChange={(event) => lab.delay(Number(event.target.value))}>
          {DELAYS.map((ms) => (
            <option key={ms} value={ms}>
              {ms === 0 ? "none" : `${ms} ms`}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Only a server that was started for it lets itself be killed by a page. */
function KillButton({ lab }: { readonly lab: Lab }): ReactNode {
  const [may, setMay] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    mayKillServer().then(setMay);
  }, []);
  if (!may) {
    return null;
  }
  const kill = async () => {
    lab.restarting();
    setProblem(await killServer());
  };
  return (
    <>
      <button type="button" title="As by kill -9; it starts again by itself" onClick={kill}>
        <Power size={16} strokeWidth={1.75} aria-hidden /> Kill the server
      </button>
      {problem ? <span role="alert">{problem}</span> : null}
    </>
  );
}

function Log({ view }: { readonly view: LabView }): ReactNode {
  if (view.incidents.length === 0) {
    return <p className={styles.empty}>Nothing has been broken yet.</p>;
  }
  return (
    <div className={styles.log}>
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Away</th>
            <th scope="col">Missed</th>
            <th scope="col">Catch-up</th>
            <th scope="col">How</th>
            <th scope="col">Equal</th>
          </tr>
        </thead>
        <tbody>
          {view.incidents.map((incident) => (
            <Row key={incident.id} incident={incident} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ incident }: { readonly incident: Incident }): ReactNode {
  const { fault, stage, beganAt, endedAt, missedBytes, catchUpBytes, mode, isEqual } = incident;
  return (
    <tr data-stage={stage} data-mode={mode} data-equal={isEqual}>
      <td>{FAULTS[fault]}</td>
      <td>{endedAt === undefined ? stage : duration(endedAt - beganAt)}</td>
      <td>{fault === "restarted" ? "" : bytes(missedBytes)}</td>
      <td>{stage === "away" ? "" : bytes(catchUpBytes)}</td>
      <td>{mode && MODES[mode]}</td>
      <td>
        {isEqual === undefined ? (
          ""
        ) : isEqual ? (
          <span className={styles.equal}>
            <span aria-hidden>✓</span> equal by digest
          </span>
        ) : (
          <strong className={styles.unequal}>not equal</strong>
        )}
      </td>
    </tr>
  );
}

const duration = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);
const bytes = (count: number): string =>
  count < 1024 ? `${count} B` : `${(count / 1024).toFixed(count < 10_240 ? 1 : 0)} KB`;
