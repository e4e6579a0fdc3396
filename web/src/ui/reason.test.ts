import i18next from "i18next";
import { beforeAll, expect, test } from "vitest";
import type { Reason } from "../api/client";
import { en } from "../i18n/en";
import { zh } from "../i18n/zh";
import { basisSentence, reasonSentence } from "./reason";

beforeAll(async () => {
  const resources = { en: { translation: en }, zh: { translation: zh } };
  await i18next.init({ lng: "en", resources, interpolation: { escapeValue: false } });
});

async function inBoth(say: () => string): Promise<string[]> {
  const said = [];
  for (const language of ["en", "zh"]) {
    await i18next.changeLanguage(language);
    said.push(say());
  }
  return said;
}

const told = (reason: Reason) => inBoth(() => reasonSentence(reason));
const ascend = { kind: "ascend", model: "910B*", count: 8 } as const;

test("the number of preempted jobs is a count, and their ids are named", async () => {
  const preempting = (jobs: number[]) => told({ code: "preempting", text: "", params: { jobs } });
  expect(await preempting([34])).toEqual([
    "preempting 1 running job (34)",
    "正在抢占 1 个运行中任务的资源（任务 34）",
  ]);
  expect(await preempting([3, 5, 8])).toEqual([
    "preempting 3 running jobs (3, 5, 8)",
    "正在抢占 3 个运行中任务的资源（任务 3, 5, 8）",
  ]);
});

test("what an approval is about is said in both languages", async () => {
  const excess = { resource: "ascend", requested: "24", limit: "20", workspace: "nlp" } as const;
  expect(await told({ code: "needs_approval", text: "", params: { job: 7, excess } })).toEqual([
    "waiting for approval (Ascend: 24 requested, 20 allowed without approval in workspace nlp)",
    "待审批（申请 Ascend 24，工作空间 nlp 的免审批上限为 20）",
  ]);
  expect(await told({ code: "needs_approval", text: "", params: { job: 7 } })).toEqual([
    "waiting for approval",
    "待审批",
  ]);
});

test("what is missing is said with what was requested", async () => {
  const requested = { workers: 2, devices: [ascend], cpus: 96 };
  const params = { requested, free: 5, most_on_one_node: 3, shortage: "too_few_on_one_node" } as const;
  expect(await told({ code: "devices_busy", text: "", params })).toEqual([
    "waiting for 2 workers with 8 Ascend 910B* each (5 free, at most 3 on one node)",
    "等待 2 个 Worker，每个 8 卡 Ascend 910B*（空闲 5 卡，单节点最多 3 卡）",
  ]);
});

test("what Slurm waits for is said in both languages, with Slurm's own word", async () => {
  const pending = (cause: "priority" | "other", slurm_reason: string) =>
    told({ code: "slurm_pending", text: "", params: { slurm_job: 4711, cause, slurm_reason } });
  expect(await pending("priority", "Priority")).toEqual([
    "waiting in Slurm's queue as job 4711: jobs ahead in Slurm's queue go first (Priority)",
    "在 Slurm 队列中等待（Slurm 作业 4711）：Slurm 队列中排在前面的作业优先（Priority）",
  ]);
  expect(await pending("other", "Odd")).toEqual([
    "waiting in Slurm's queue as job 4711: Odd",
    "在 Slurm 队列中等待（Slurm 作业 4711）：Odd",
  ]);
});

test("a failure names its worker, its rank and how it exited, and its detail once", async () => {
  const params = { worker: 1, rank: 3, exit: { code: 7 }, detail: "no module named torch" };
  expect(await told({ code: "program_error", text: "", params })).toEqual([
    "program failed: rank 3 of worker 1, exit code 7 (no module named torch)",
    "程序出错：Worker 1 的 Rank 3，退出码 7（no module named torch）",
  ]);
  expect(await told({ code: "requeued", text: "", params: { detail: "NODE_FAIL" } })).toEqual([
    "requeued by the cluster (NODE_FAIL)",
    "集群要求重新排队（NODE_FAIL）",
  ]);
});

test("a code of a newer server is said as the server says it", async () => {
  const newer = { code: "waiting_for_tea", text: "waiting for tea", params: {} } as unknown as Reason;
  expect(await told(newer)).toEqual(["waiting for tea", "waiting for tea"]);
});

test("what an estimate goes by is said in both languages, guesses as guesses", async () => {
  const none = { preemptions: 0, time_limits: 0, progress: 0, past_durations: 0, guesses: 0 };
  expect(await inBoth(() => basisSentence({ ...none, time_limits: 2, guesses: 1 }))).toEqual([
    "the time limits of 2 running jobs and a guess for 1 running job without time limit or history",
    "2 个运行中任务的最长运行时长、对 1 个无最长运行时长和历史记录的运行中任务的粗略估计",
  ]);
  expect(await inBoth(() => basisSentence(none))).toEqual([
    "free resources and queue positions",
    "当前空闲资源和排队位置",
  ]);
});
