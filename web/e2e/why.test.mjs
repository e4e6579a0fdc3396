// What people are told of a waiting job: when it starts, what it waits for, and what waits for them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage, PASSWORD, signIn, startBrowser, startSite } from "./site.mjs";

let site;
let browser;

before(async () => {
  site = await startSite();
  browser = await startBrowser();
  await site.account("ada", true);
  await site.account("mary", false);
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

async function window(name = "ada") {
  const opened = await openPage(browser, site);
  await signIn(opened.page, name);
  return opened;
}

const inChinese = (page) => page.getByLabel("Language").selectOption("zh");
const stop = (...ids) => Promise.all(ids.map((id) => site.ask("POST", `/jobs/${id}/stop`, { grace: "0s" })));

test("a start behind a job without end is the earliest there can be, and a guess", async () => {
  const all = { kind: "nvidia", model: "A100-80G", count: 4 };
  const endless = await site.submit({ name: "endless", command: "sleep 1000", devices: all });
  await site.jobWhen(endless.id, (view) => view.state === "running");
  const next = await site.submit({ name: "next", command: "true", devices: all });
  const { page, faults, close } = await window();
  await page.goto(`/jobs/${next.id}`);
  const why = page.getByRole("region", { name: "Waiting reason" });
  await why.getByText("Earliest start in").waitFor();
  await why.getByText("based on a guess for 1 running job without time limit or history").waitFor();
  assert.doesNotMatch(await why.textContent(), /Expected start/);
  await inChinese(page);
  const zh = page.getByRole("region", { name: "等待原因" });
  await zh.getByText("距最早开始时间").waitFor();
  await zh.getByText("对 1 个无最长运行时长和历史记录的运行中任务的粗略估计").waitFor();
  await stop(next.id, endless.id);
  assert.deepEqual(faults, []);
  await close();
});

test("a job in back-off waits for its time and for nobody", async () => {
  const all = { kind: "nvidia", model: "A100-80G", count: 4 };
  // Some are left, so that there is something to suggest.
  const holder = await site.submit({ name: "holder", command: "sleep 1000", devices: { ...all, count: 2 } });
  await site.jobWhen(holder.id, (view) => view.state === "running");
  const job = await site.submit({ name: "again", command: "true", devices: all });
  const { page, faults, close } = await window();
  const why = page.getByRole("region", { name: "Waiting reason" });
  await page.goto(`/jobs/${job.id}`);
  await why.getByText("Holders of the requested resources").waitFor();
  await why.getByText("Suggestions").waitFor();
  // The first back-offs are over before a page is drawn, so that the reason is the answer's only part that is not the server's.
  const reason = {
    code: "retry_backoff",
    text: "waiting to try again",
    params: { attempt: 1, not_before: "2030-01-01T00:00:00Z" },
  };
  await page.route(`**/api/v1/jobs/${job.id}/why`, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), reason } });
  });
  await page.reload();
  await why.getByText(/waiting for the next attempt, no earlier than .* \(attempt 1 failed\)/).waitFor();
  const said = await why.textContent();
  for (const wrong of ["Holders of the requested resources", "Suggestions", "holder"])
    assert.ok(!said.includes(wrong), said);
  await page.unrouteAll();
  await stop(job.id, holder.id);
  assert.deepEqual(faults, []);
  await close();
});

test("owners see that a job waits for them, and everybody sees why it waits", async () => {
  await site.ask("PUT", "/workspaces/careful", { approve_above: { ascend: 1 } });
  await site.ask("PUT", "/workspaces/careful/members/mary", { role: "member" });
  const api = `${site.address}/api/v1`;
  const json = { "content-type": "application/json" };
  const body = JSON.stringify({ name: "mary", password: PASSWORD });
  const session = await fetch(`${api}/session`, { method: "POST", headers: json, body });
  const { secret } = await session.json();
  const asked = await fetch(`${api}/jobs`, {
    method: "POST",
    headers: { ...json, authorization: `Bearer ${secret}` },
    body: JSON.stringify({
      name: "large",
      workspace: "careful",
      command: "sleep 1000",
      cpus: "10m",
      devices: { kind: "ascend", count: 2 },
    }),
  });
  assert.equal(asked.status, 201, await asked.clone().text());
  const { id } = await asked.json();

  const hers = await window("mary");
  await hers.page.goto(`/jobs/${id}`);
  await hers.page
    .getByRole("region", { name: "Waiting reason" })
    .getByText("waiting for approval (Ascend: 2 requested, 1 allowed without approval in workspace careful)")
    .waitFor();
  await inChinese(hers.page);
  const zh = hers.page.getByRole("region", { name: "等待原因" });
  await zh.getByText("待审批（申请 Ascend 2，工作空间 careful 的免审批上限为 1）").waitFor();
  assert.equal(await hers.page.locator(".badge").count(), 0, "it does not wait for her");
  await hers.close();

  const { page, faults, close } = await window();
  await page.locator(".badge").getByText("1 job waiting for your approval").waitFor({ state: "attached" });
  await page.goto(`/jobs/${id}`);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator(".badge").waitFor({ state: "detached" });
  await stop(id);
  assert.deepEqual(faults, []);
  await close();
});
