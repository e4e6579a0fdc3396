/** The steps of a job's life with their times; pure, so that it can be tested. */
import type { JobView } from "../../api/client";
import { spanSeconds } from "../../format/time";

type StepName = "submitted" | "queued" | "starting" | "running" | "ended";
export type Step = {
  name: StepName;
  at?: string | undefined;
  to?: string | undefined;
  is: "done" | "now" | "ahead";
};

/** When the job began to wait, this time: it may have run before, and been preempted or tried again. */
export function waitingSince(job: Pick<JobView, "state" | "attempts" | "submitted_at">): string {
  const isWaiting = job.state === "queued" || job.state === "held";
  const before = isWaiting ? job.attempts.at(-1) : job.attempts.at(-2);
  return before?.ended_at ?? job.submitted_at;
}

/** How long it waited before each of its attempts, in all, in milliseconds; the present wait comes on top. */
export function waitedBefore(job: Pick<JobView, "waited">): number {
  return 1000 * (spanSeconds(job.waited ?? "") ?? 0);
}

/** Of the last attempt: what came before it is told by the list of attempts. */
export function steps(job: JobView): Step[] {
  const attempt = job.attempts.at(-1);
  const isWaiting = job.state === "queued" || job.state === "held";
  const placed = isWaiting ? undefined : attempt?.placed_at;
  const started = isWaiting ? undefined : firstRunning(job);
  const ended = job.ended_at ?? undefined;
  const queuedTo = placed ?? ended;
  const list: Step[] = [
    { name: "submitted", at: job.submitted_at, is: "done" },
    { name: "queued", at: waitingSince(job), to: queuedTo, is: queuedTo ? "done" : "now" },
    {
      name: "starting",
      at: placed,
      to: started ?? (placed ? ended : undefined),
      is: step(placed, started ?? ended),
    },
    { name: "running", at: started, to: started ? ended : undefined, is: step(started, ended) },
    { name: "ended", at: ended, is: ended ? "done" : "ahead" },
  ];
  return list;
}

function step(from: string | undefined, to: string | undefined): Step["is"] {
  if (!from) return "ahead";
  return to ? "done" : "now";
}

/** When the last attempt's workers all ran. */
function firstRunning(job: JobView): string | undefined {
  const workers = job.attempts.at(-1)?.workers ?? [];
  const times = workers.map((worker) => worker.running_at).filter((at): at is string => Boolean(at));
  return times.length > 0 && times.length === workers.length ? times.sort().at(-1) : undefined;
}

/** How many ranks each worker of the last attempt has; the rule is the server's (`JobSpec::ranks_per_worker`). */
export function ranksPerWorker(job: JobView): number {
  const { ranks, framework, compat, devices, any_of } = job.spec;
  if (typeof ranks === "number") return ranks;
  if (ranks === "per_worker") return 1;
  if (ranks !== "per_device" && ((framework ?? "none") === "none" || compat?.includes("dlc"))) return 1;
  const granted = job.attempts.at(-1)?.workers[0]?.devices.length;
  const asked = Math.ceil(Math.max(devices?.count ?? 0, ...(any_of ?? []).map((request) => request.count)));
  return Math.max(1, granted ?? asked);
}

export const rankCount = (job: JobView): number => ranksPerWorker(job) * (job.spec.workers ?? 1);
