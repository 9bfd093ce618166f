/** What streaming costs a page: its long tasks, its frames, and what React did. */
import type { CDPSession, Page } from "playwright-core";
import { devtools } from "../pages.js";

/** What the page notes about itself while it is watched. */
interface Notes {
  longTasks: number[];
  frames: number[];
  commits: number;
  renders: number;
  spoken: string[];
}

declare global {
  var notes: Notes;
}

/** What a stream cost. */
export interface Cost {
  /** Tasks of 50 ms and more, as a person felt them, in ms. */
  readonly longTasks: readonly number[];
  /** The longest task by the main thread's own time, in ms: what other programs took is not in it. */
  readonly longestOwnMs: number;
  /** What that one did, each in ms. */
  readonly longestWithin: string;
  readonly frames: number;
  /** The longest time between two frames, in ms. */
  readonly longestFrameMs: number;
  /** How often React changed the page. */
  readonly commits: number;
  /** How many components it rendered for that. */
  readonly renders: number;
  /** What was said to a screen reader. */
  readonly spoken: readonly string[];
  readonly scriptMs: number;
  readonly layoutMs: number;
  readonly styleMs: number;
  readonly wallMs: number;
}

/** Before a page is loaded: have it count what React does, as React's own tools do. */
export async function countReact(page: Page): Promise<void> {
  await page.addInitScript(() => {
    globalThis.notes = { longTasks: [], frames: [], commits: 0, renders: 0, spoken: [] };
    interface Fiber {
      readonly child: Fiber | null;
      readonly sibling: Fiber | null;
      readonly alternate: Fiber | null;
      readonly flags: number;
      readonly tag: number;
    }
    const PERFORMED_WORK = 1;
    const COMPONENTS = [0, 1, 11, 14, 15];
    // a subtree that was left alone is the same object as in the tree before
    const count = (fiber: Fiber | null, before: Fiber | null): void => {
      for (let now = fiber; now !== null && now !== before; now = now.sibling) {
        if (now.flags & PERFORMED_WORK && COMPONENTS.includes(now.tag)) {
          notes.renders++;
        }
        if (now.child !== now.alternate?.child) {
          count(now.child, now.alternate?.child ?? null);
        }
      }
    };
    Object.assign(globalThis, {
      __REACT_DEVTOOLS_GLOBAL_HOOK__: {
        supportsFiber: true,
        inject: () => 1,
        onCommitFiberUnmount: () => undefined,
        onPostCommitFiberRoot: () => undefined,
        onCommitFiberRoot: (_: number, root: { current: Fiber }) => {
          notes.commits++;
          count(root.current.child, root.current.alternate?.child ?? null);
        },
      },
    });
  });
}

/** Begin to watch a page. */
async function begin(page: Page): Promise<void> {
  await page.evaluate(() => {
    const isWatched = notes.frames.length > 0;
    Object.assign(notes, { longTasks: [], frames: [], commits: 0, renders: 0, spoken: [] });
    if (isWatched) {
      return;
    }
    new PerformanceObserver((list) => {
      notes.longTasks.push(...list.getEntries().map(({ duration }) => Math.round(duration)));
    }).observe({ type: "longtask" });
    const frame = (at: number): void => {
      notes.frames.push(at);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    const live = [
      ...document.querySelectorAll("[aria-live]:not([aria-live=off]), [role=status], [role=alert], output"),
    ];
    for (const region of live) {
      new MutationObserver(() => notes.spoken.push(region.textContent ?? "")).observe(region, {
        subtree: true,
        childList: true,
        characterData: true,
      });
    }
  });
}

type Metrics = Readonly<Record<string, number>>;

async function metricsOf(line: CDPSession): Promise<Metrics> {
  const { metrics } = await line.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly tdur?: number;
  readonly dur?: number;
  readonly args?: { readonly name?: string; readonly elementCount?: number };
}

/** Record the tasks of the page's main thread during `act`. */
async function tracing(line: CDPSession, act: () => Promise<void>): Promise<TraceEvent[]> {
  const events: TraceEvent[] = [];
  line.on("Tracing.dataCollected", ({ value }) => void events.push(...(value as unknown as TraceEvent[])));
  await line.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["devtools.timeline", "toplevel"] },
  });
  await act();
  const complete = new Promise((resolve) => line.once("Tracing.tracingComplete", resolve));
  await line.send("Tracing.end");
  await complete;
  return events;
}

/** The longest task of the thread that draws a page, by the thread's own clock. */
function longestTask(events: readonly TraceEvent[]): TraceEvent {
  const main = new Set(
    events
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = events.filter(({ name, pid, tid }) => /RunTask$/.test(name) && main.has(`${pid} ${tid}`));
  if (!tasks.some(({ tdur }) => tdur !== undefined)) {
    throw new Error("The trace has no tasks with the thread's own time.");
  }
  return tasks.reduce((longest, task) => ((task.tdur ?? 0) > (longest.tdur ?? 0) ? task : longest));
}

/** What a task was made of, the longest first. */
function within(events: readonly TraceEvent[], { pid, tid, ts, dur = 0 }: TraceEvent): string {
  const parts = events
    .filter((event) => event.pid === pid && event.tid === tid && event.ts > ts && event.ts < ts + dur)
    .filter(({ tdur = 0 }) => tdur >= 1000)
    .sort((one, other) => (other.tdur ?? 0) - (one.tdur ?? 0));
  return parts
    .slice(0, 8)
    .map(({ name, tdur = 0, args }) => {
      const of = args?.elementCount === undefined ? "" : ` of ${args.elementCount} elements`;
      return `${name} ${Math.round(tdur / 1000)}${of}`;
    })
    .join(", ");
}

/** What `act` costs the page, which was opened after `countReact`. */
export async function costOf(page: Page, act: () => Promise<void>): Promise<Cost> {
  const line = await devtools(page);
  await line.send("Performance.enable");
  await begin(page);
  const before = await metricsOf(line);
  const began = Date.now();
  const events = await tracing(line, act);
  const wallMs = Date.now() - began;
  const after = await metricsOf(line);
  const spent = (name: string): number => Math.round(((after[name] ?? 0) - (before[name] ?? 0)) * 1000);
  const notes = await page.evaluate(() => globalThis.notes);
  await line.detach();
  const longest = longestTask(events);
  const gaps = notes.frames.slice(1).map((at, index) => at - (notes.frames[index] ?? at));
  return {
    longTasks: notes.longTasks,
    longestOwnMs: Math.round((longest.tdur ?? 0) / 1000),
    longestWithin: within(events, longest),
    frames: notes.frames.length,
    longestFrameMs: Math.round(Math.max(0, ...gaps)),
    commits: notes.commits,
    renders: notes.renders,
    spoken: notes.spoken,
    scriptMs: spent("ScriptDuration"),
    layoutMs: spent("LayoutDuration"),
    styleMs: spent("RecalcStyleDuration"),
    wallMs,
  };
}

/** In words, for whoever reads the tests' output. */
export function described(cost: Cost, tokens: number): string {
  const each = (value: number): string => (value / tokens).toFixed(3);
  const long = cost.longTasks.length ? cost.longTasks.join(", ") : "none";
  return [
    `long tasks: ${long} ms; longest by the thread's own time: ${cost.longestOwnMs} ms (${cost.longestWithin})`,
    `frames: ${cost.frames} in ${cost.wallMs} ms, the longest ${cost.longestFrameMs} ms`,
    `per token: ${each(cost.commits)} commits, ${each(cost.renders)} renders, ${each(cost.scriptMs)} ms script, ` +
      `${each(cost.styleMs)} ms style, ${each(cost.layoutMs)} ms layout`,
  ].join("\n");
}
