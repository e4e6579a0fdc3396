/** The state of a job, by colour and by shape: neither alone is enough for everybody. */
import { t } from "i18next";
import type { ReactNode } from "react";
import type { JobView } from "../api/client";

const STATES = [
  "held",
  "approval",
  "queued",
  "starting",
  "running",
  "stopping",
  "succeeded",
  "failed",
  "stopped",
] as const;
export type StateWord = (typeof STATES)[number];

/** Total: a state that nobody has drawn does not compile. */
const SHAPES: Record<StateWord, ReactNode> = {
  held: <path d="M3 2v8M9 2v8" stroke="currentColor" strokeWidth="2.4" />,
  approval: <path d="M3 2v8M9 2v8" stroke="currentColor" strokeWidth="2.4" />,
  queued: <circle cx="6" cy="6" r="4.4" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  starting: (
    <>
      <circle cx="6" cy="6" r="4.4" fill="none" stroke="currentColor" strokeWidth="1.8" />
      <path d="M6 1.6a4.4 4.4 0 0 1 0 8.8z" fill="currentColor" />
    </>
  ),
  running: <path d="M2.5 1l8 5-8 5z" fill="currentColor" />,
  stopping: <rect x="2" y="2" width="8" height="8" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  succeeded: <path d="M1.5 6.5l3 3 6-7" fill="none" stroke="currentColor" strokeWidth="2" />,
  failed: <path d="M2 2l8 8M10 2l-8 8" stroke="currentColor" strokeWidth="2.2" />,
  stopped: <rect x="2" y="2" width="8" height="8" fill="currentColor" />,
};

const MOVING: ReadonlySet<StateWord> = new Set<StateWord>(["starting", "running", "stopping"]);

/** A job that waits for somebody's approval is held; nobody has to release it, and that is what people want to know. */
export function stateOf(job: Pick<JobView, "state" | "outcome"> & { reason?: { code: string } }): StateWord {
  if (job.state === "held" && job.reason?.code === "needs_approval") return "approval";
  return job.state === "ended" ? (job.outcome ?? "succeeded") : job.state;
}

export const tone = (state: StateWord) =>
  ({ "--tone": `var(--${state === "approval" ? "held" : state})` }) as React.CSSProperties;

function StateShape({ state }: { state: StateWord }) {
  return (
    <svg viewBox="0 0 12 12" aria-hidden="true">
      {SHAPES[state]}
    </svg>
  );
}

/** The language is asked for and not listened to, as in `reason.tsx`. */
export function State({ state }: { state: StateWord }) {
  return (
    <span className={MOVING.has(state) ? "state moving" : "state"} style={tone(state)}>
      <StateShape state={state} />
      {t(`state.${state}`)}
    </span>
  );
}
