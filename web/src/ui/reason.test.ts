import i18next from "i18next";
import { beforeAll, expect, test } from "vitest";
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

test("the number of preempted jobs is a count, and not a job's id", async () => {
  const preempting = (jobs: string) =>
    inBoth(() =>
      reasonSentence({ code: "preempting", text: "job 34 must make room for it", about: { jobs } }),
    );
  expect(await preempting("1")).toEqual(["preempting 1 running job", "正在抢占 1 个运行中任务的资源"]);
  expect(await preempting("3")).toEqual(["preempting 3 running jobs", "正在抢占 3 个运行中任务的资源"]);
});

test("what an approval is about is said in both languages", async () => {
  const about = { resource: "ascend", asked: "24", limit: "20", workspace: "nlp" };
  const text = "asks for 24 Ascend devices, and 20 is the most in workspace `nlp` without approval";
  expect(await inBoth(() => reasonSentence({ code: "needs_approval", text, about }))).toEqual([
    "waiting for approval (Ascend: 24 requested, 20 allowed without approval in workspace nlp)",
    "待审批（申请 Ascend 24，工作空间 nlp 的免审批上限为 20）",
  ]);
  const stored = () => reasonSentence({ code: "needs_approval", text });
  expect(await inBoth(stored)).toEqual([text, text]);
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

test("the detail of a reason is said once, in the brackets of the language", async () => {
  const about = { until: "2030-01-01T00:00:00Z", detail: "NODE_FAIL" };
  expect(await inBoth(() => reasonSentence({ code: "requeued", text: "", about }))).toEqual([
    "requeued by the cluster (NODE_FAIL)",
    "集群要求重新排队（NODE_FAIL）",
  ]);
});
