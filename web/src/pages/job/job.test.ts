import { expect, test } from "vitest";
import type { JobView, MetricPoint, Sample } from "../../api/client";
import { deviceSeries, isEmpty, metricNames, metricSeries } from "./series";
import { heard, openFrame, stdinFrame } from "./session";
import { rankCount, steps, waitedBefore, waitingSince } from "./timeline";

const at = (minute: number) => `2030-01-01T00:${String(minute).padStart(2, "0")}:00Z`;

function job(rest: Partial<JobView>): JobView {
  return {
    id: 1,
    name: "job",
    workspace: "default",
    owner: "ada",
    state: "queued",
    reason: { code: "about_to_start", text: "" },
    priority: 5,
    submitted_at: at(0),
    generation: 1,
    spec: { command: "true" },
    attempts: [],
    ...rest,
  } as JobView;
}

const attempt = (running: (number | undefined)[]) => ({
  number: 1,
  placed_at: at(2),
  reason: { code: "running", text: "", params: { workers: 1 } } as const,
  workers: running.map((minute, index) => ({
    index,
    node: "n",
    devices: [0, 1],
    phase: "running" as const,
    running_at: minute === undefined ? undefined : at(minute),
  })),
});

const told = (view: JobView) => steps(view).map((step) => `${step.name} ${step.is}`);

test("the timeline says where a job is", () => {
  expect(told(job({}))).toEqual([
    "submitted done",
    "queued now",
    "starting ahead",
    "running ahead",
    "ended ahead",
  ]);
  const half = job({ state: "starting", attempts: [attempt([3, undefined])] });
  expect(told(half)).toEqual([
    "submitted done",
    "queued done",
    "starting now",
    "running ahead",
    "ended ahead",
  ]);
  const running = job({ state: "running", attempts: [attempt([3, 4])] });
  expect(told(running)).toEqual([
    "submitted done",
    "queued done",
    "starting done",
    "running now",
    "ended ahead",
  ]);
  expect(steps(running)[3]?.at, "a gang runs when its last worker does").toBe(at(4));
  const never = job({ state: "ended", outcome: "stopped", ended_at: at(5) });
  expect(told(never)).toEqual([
    "submitted done",
    "queued done",
    "starting ahead",
    "running ahead",
    "ended done",
  ]);
  const again = job({ state: "queued", attempts: [attempt([3, 4])] });
  expect(told(again)[1], "a job that was preempted waits again").toBe("queued now");
});

test("ranks are counted as the server counts them", () => {
  const spec = (rest: object) => job({ spec: { command: "true", ...rest } as JobView["spec"] });
  expect(rankCount(spec({ workers: 2, framework: "pytorch", devices: { count: 8 } }))).toBe(16);
  expect(rankCount(spec({ workers: 3, devices: { count: 8 } }))).toBe(3);
  expect(rankCount(spec({ workers: 2, ranks: 3 }))).toBe(6);
  expect(rankCount(spec({ ranks: "per_device", devices: { count: 4 } }))).toBe(4);
  expect(rankCount(spec({ framework: "pytorch" }))).toBe(1);
});

test("samples become a line for each device, with holes where nothing was read", () => {
  const samples = [
    { at: at(1), devices: { "0": { percent: 90 }, "10": { percent: 5 } } },
    { at: at(2), devices: { "0": { percent: 91 } } },
  ] as unknown as Sample[];
  const series = deviceSeries(samples, "percent");
  expect(series.lines).toEqual([
    { label: "0", values: [90, 91] },
    { label: "10", values: [5, null] },
  ]);
  expect(isEmpty(deviceSeries(samples, "memory"))).toBe(true);
});

test("a metric of two jobs is laid over the same steps", () => {
  const point = (step: number, loss: number, rank = 0): MetricPoint => ({
    at: at(step),
    rank,
    step,
    values: { loss },
  });
  const series = metricSeries("loss", [
    { label: "new", points: [point(1, 9), point(1, 8, 1), point(3, 7)] },
    { label: "old", points: [point(2, 5), point(3, 4)] },
  ]);
  expect(series.x).toEqual([1, 2, 3]);
  expect(series.lines.map((line) => line.values)).toEqual([
    [9, null, 7],
    [null, 5, 4],
  ]);
  expect(metricNames([point(1, 1)])).toEqual(["loss"]);
});

test("frames of a session are what the launcher reads", () => {
  expect([...stdinFrame("é")]).toEqual([1, 0xc3, 0xa9]);
  const open = new TextDecoder().decode(openFrame({ rows: 24, columns: 80 }));
  expect(open).toBe('\u0000{"command":[],"terminal":{"rows":24,"columns":80},"env":[]}');
  const message = (kind: number, text: string) =>
    Uint8Array.from([kind, ...new TextEncoder().encode(text)]).buffer;
  expect(heard(message(6, '{"signal":9}'))).toEqual({ type: "exit", code: 137 });
  expect(heard(message(7, "gone"))).toEqual({ type: "error", text: "gone" });
  expect(heard(message(4, "{}"))).toBeUndefined();
});

test("a job that was preempted waits since then, and not since it was submitted", () => {
  const before = { ...attempt([3]), ended_at: at(30) };
  const waits = job({ state: "queued", started_at: at(3), attempts: [before] });
  expect(waitingSince(waits)).toBe(at(30));
  expect(steps(waits).find((step) => step.name === "queued")?.at).toBe(at(30));
  const again = { ...attempt([41]), number: 2, placed_at: at(40) };
  const runs = job({ state: "running", started_at: at(3), attempts: [before, again] });
  expect(waitingSince(runs)).toBe(at(30));
  expect(waitingSince(job({}))).toBe(at(0));
});

test("what a job has waited is all of its waits, as the command line tells it", () => {
  expect(waitedBefore({ waited: "1h2m3s" })).toBe(3_723_000);
  expect(waitedBefore({})).toBe(0);
});
