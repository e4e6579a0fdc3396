/** What a simulation answers, as tables and lines. Pure. */
import { figure } from "../../format/amounts";
import { duration } from "../../format/time";
import type { Line } from "../../ui/chart";

type Distribution = { mean: number; median: number; p90: number; p99: number; max: number };

/** The part of `danlu sim replay --json` that is shown. */
export type Run = {
  name: string;
  nodes: number;
  unit: string;
  capacity: number;
  jobs: { submitted: number; succeeded: number; refused: number; unfinished: number };
  makespan_seconds: number;
  utilisation_percent: number;
  fragmentation_percent: number | null;
  most_queued: number;
  all: {
    wait_seconds: Distribution;
    completion_seconds: Distribution;
    preemptions: number;
    lost_unit_hours: number;
  };
  series: { step_seconds: number; utilisation_percent: number[]; queued: number[] };
  completion_quantiles_seconds: number[];
};

export type Comparison = { trace: string; notes: string[]; runs: Run[] };

export const FIGURES = [
  "capacity",
  "jobs",
  "unfinished",
  "makespan",
  "utilisation",
  "fragmentation",
  "waitMedian",
  "waitP90",
  "completionMean",
  "mostQueued",
  "preemptions",
  "lost",
] as const;
export type Figure = (typeof FIGURES)[number];

const span = (seconds: number) => duration(seconds * 1000);
const percent = (value: number | null) => (value === null ? "–" : `${value.toFixed(1)} %`);

/** Total: a figure that nobody knows how to show does not compile. */
const SHOWN: Record<Figure, (run: Run) => string> = {
  capacity: (run) => `${figure(run.capacity)} (${run.nodes})`,
  jobs: (run) => figure(run.jobs.submitted),
  unfinished: (run) => figure(run.jobs.unfinished + run.jobs.refused),
  makespan: (run) => span(run.makespan_seconds),
  utilisation: (run) => percent(run.utilisation_percent),
  fragmentation: (run) => percent(run.fragmentation_percent),
  waitMedian: (run) => span(run.all.wait_seconds.median),
  waitP90: (run) => span(run.all.wait_seconds.p90),
  completionMean: (run) => span(run.all.completion_seconds.mean),
  mostQueued: (run) => figure(run.most_queued),
  preemptions: (run) => figure(run.all.preemptions),
  lost: (run) => figure(run.all.lost_unit_hours),
};

export const shownFigure = (name: Figure, run: Run): string => SHOWN[name](run);

type Curves = { x: number[]; lines: Line[] };

/** Curves over hours; runs that end earlier leave holes. Each has stretches of its own length, so values are taken at the first's. */
export function overTime(runs: Run[], pick: (run: Run) => number[]): Curves {
  const step = Math.max(...runs.map((run) => run.series.step_seconds), 1);
  const ends = runs.map((run) => pick(run).length * run.series.step_seconds);
  const count = Math.ceil(Math.max(...ends, 0) / step);
  const x = Array.from({ length: count }, (_, index) => (index * step) / 3600);
  const lines = runs.map((run) => {
    const values = pick(run);
    const at = (index: number) => values[Math.floor((index * step) / run.series.step_seconds)] ?? null;
    return { label: run.name, values: x.map((_, index) => at(index)) };
  });
  return { x, lines };
}

/** How many percent of the jobs had ended after so long. */
export function completion(runs: Run[]): Curves {
  const most = Math.max(...runs.map((run) => run.completion_quantiles_seconds.length), 0);
  const x = Array.from({ length: most }, (_, index) => (100 * index) / Math.max(1, most - 1));
  return {
    x,
    lines: runs.map((run) => ({
      label: run.name,
      values: x.map((_, index) => run.completion_quantiles_seconds[index] ?? null),
    })),
  };
}
