import { expect, test } from "vitest";
import { completion, overTime, type Run, shownFigure } from "./compare";

const run = (name: string, step: number, utilisation: number[]): Run => ({
  name,
  nodes: 2,
  unit: "devices",
  capacity: 16,
  jobs: { submitted: 3, succeeded: 2, refused: 1, unfinished: 0 },
  makespan_seconds: 7260,
  utilisation_percent: 61.25,
  fragmentation_percent: null,
  most_queued: 4,
  all: {
    wait_seconds: { mean: 1, median: 60, p90: 120, p99: 1, max: 1 },
    completion_seconds: { mean: 90, median: 1, p90: 1, p99: 1, max: 1 },
    preemptions: 0,
    lost_unit_hours: 0.5,
  },
  series: { step_seconds: step, utilisation_percent: utilisation, queued: [] },
  completion_quantiles_seconds: [1, 2, 3],
});

test("figures are told as people read them", () => {
  const shown = (
    ["capacity", "unfinished", "makespan", "utilisation", "fragmentation", "waitMedian"] as const
  ).map((name) => shownFigure(name, run("a", 1, [])));
  expect(shown).toEqual(["16 (2)", "1", "2 h 1 min", "61.3 %", "–", "1 min"]);
});

test("runs of different lengths lie over the same hours", () => {
  const runs = [run("short", 1800, [10, 20]), run("long", 3600, [50, 60, 70])];
  const { x, lines } = overTime(runs, (one) => one.series.utilisation_percent);
  expect(x).toEqual([0, 1, 2]);
  expect(lines.map((line) => line.values)).toEqual([
    [10, null, null],
    [50, 60, 70],
  ]);
});

test("completion goes from the shortest job to the longest", () => {
  expect(completion([run("a", 1, [])])).toEqual({
    x: [0, 50, 100],
    lines: [{ label: "a", values: [1, 2, 3] }],
  });
});
