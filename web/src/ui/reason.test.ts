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

test("how many jobs make room is a number of jobs, and not a job's number", async () => {
  const making = (jobs: string) =>
    inBoth(() =>
      reasonSentence({ code: "preempting", text: "job 34 must make room for it", about: { jobs } }),
    );
  expect(await making("1")).toEqual(["1 running job has to make room for it", "有 1 个任务需要让出设备"]);
  expect(await making("3")).toEqual(["3 running jobs have to make room for it", "有 3 个任务需要让出设备"]);
});

test("what an approval is about is said in both languages", async () => {
  const about = { resource: "ascend", asked: "24", limit: "20", workspace: "nlp" };
  const text = "asks for 24 Ascend devices, and 20 is the most in workspace `nlp` without approval";
  expect(await inBoth(() => reasonSentence({ code: "needs_approval", text, about }))).toEqual([
    "asks for 24 Ascend; 20 is the most in workspace nlp without approval by an owner",
    "申请 24 Ascend；工作空间 nlp 中超过 20 需由所有者批准",
  ]);
  const stored = () => reasonSentence({ code: "needs_approval", text });
  expect(await inBoth(stored)).toEqual([text, text]);
});

test("what an estimate goes by is said in both languages, guesses as guesses", async () => {
  const none = { preemptions: 0, time_limits: 0, progress: 0, past_durations: 0, guesses: 0 };
  expect(await inBoth(() => basisSentence({ ...none, time_limits: 2, guesses: 1 }))).toEqual([
    "the time limits of 2 running jobs and a guess for 1 running job without limit or history",
    "2 个运行中任务的最长运行时长、1 个既无时限也无历史的运行中任务只能猜测",
  ]);
  expect(await inBoth(() => basisSentence(none))).toEqual([
    "what is free now and who is ahead",
    "当前空闲资源和排在前面的任务",
  ]);
});
