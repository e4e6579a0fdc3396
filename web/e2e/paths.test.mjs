// What people do with the console, from the outside: by role and label, against the real server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { openPage, PASSWORD, signIn, startBrowser, startSite } from "./site.mjs";

/** Trains nothing, but talks like something that does: two lines a second, a loss that falls, progress. */
const TRAINING = `
import os, time, danlu
rank = int(os.environ["RANK"])
print("world of", os.environ["WORLD_SIZE"], flush=True)
for step in range(1, 100000):
    print(f"step {step} on rank {rank}", flush=True)
    danlu.metric(step=step, loss=10 / step)
    danlu.progress(min(0.9, step / 1000))
    if step == 3 and rank == 5:
        print("ValueError: the unlucky rank", flush=True)
    time.sleep(0.5)
`;
const COMMAND = `exec python3 -u -c '${TRAINING}'`;

let site;
let browser;

before(async () => {
  site = await startSite();
  browser = await startBrowser();
  await site.account("ada", true);
  await site.account("mary");
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

async function window() {
  const opened = await openPage(browser, site);
  await signIn(opened.page, "ada");
  return opened;
}

/** Puts a job together in the form and sends it off; the number of the job that came of it. */
async function submitInForm(page, { name, command, devices, count, workers, framework }) {
  await page.getByRole("link", { name: "Submit" }).first().click();
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Workspace").fill("default");
  await page.getByRole("textbox", { name: "Command" }).fill(command);
  if (framework) await page.getByLabel("Framework").selectOption(framework);
  if (devices)
    await page.getByRole("combobox", { name: "Devices", exact: true }).selectOption({ label: devices });
  if (count) await page.getByLabel("Devices per worker").fill(String(count));
  if (workers) await page.getByLabel("Workers", { exact: true }).fill(String(workers));
}

const inState = (page, state) => page.getByRole("status", { name: "State" }).getByText(state).waitFor();

async function send(page) {
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/\/jobs\/\d+$/);
  return Number(page.url().split("/").at(-1));
}

test("a distributed job is submitted, watched, searched, entered, stopped and cloned", async () => {
  const { page, faults, close } = await window();
  await submitInForm(page, {
    name: "resnet",
    command: COMMAND,
    framework: "pytorch",
    devices: "Ascend 910B3",
    count: 4,
    workers: 2,
  });
  await page.getByText("The job would start immediately.").waitFor();
  const file = await page.getByLabel("YAML (in sync with the form)").inputValue();
  assert.match(file, /workers: 2/);
  assert.match(file, /model: 910B3/);
  assert.match(
    await page.locator("code").last().textContent(),
    /danlu submit --name resnet .*--devices ascend:910B3:4/,
  );
  const id = await send(page);
  await inState(page, "Running");

  await page.getByRole("link", { name: "Logs" }).click();
  await page.getByText("step 4 on rank 7").waitFor();
  await page.getByLabel("Search the whole log").fill("unlucky");
  await page.getByLabel("Search the whole log").press("Enter");
  const hits = page.getByRole("region", { name: "Search results" });
  await hits.getByText("1 line").waitFor();
  await hits.getByRole("link", { name: "r5: 1" }).waitFor();
  await hits.getByRole("link", { name: /r5:\d/ }).last().click();
  await page.waitForURL(/rank=5&line=\d+/);
  await page.getByRole("region", { name: "Log", exact: true }).getByText("the unlucky rank").waitFor();

  await page.getByRole("link", { name: "Metrics" }).click();
  const loss = page.getByRole("region", { name: "loss" });
  await loss.waitFor();
  const shown = () => loss.locator(".number").first().textContent();
  const first = await shown();
  await page.waitForFunction(
    ([text]) => document.querySelector('[aria-label="loss"] .number')?.textContent !== text,
    [first],
  );

  await page.getByRole("link", { name: "Ranks" }).click();
  const ranks = page.getByRole("table", { name: "Ranks" });
  await ranks.waitFor();
  assert.equal(await ranks.getByRole("row").count(), 9);

  await page.getByRole("link", { name: "Terminal" }).click();
  await page.getByLabel("Terminal input").waitFor();
  await page.getByLabel("Terminal input").pressSequentially("echo $((6*7))-$DANLU_JOB_ID\n");
  await page.locator(".xterm").getByText(`42-${id}`).first().waitFor();

  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await inState(page, "Stopped");

  await page.getByRole("button", { name: "Clone" }).click();
  await page.waitForURL(/like=/);
  await page.getByLabel("Name").fill("resnet-again");
  const copy = await send(page);
  const job = await site.jobWhen(copy, (view) => view.state === "running");
  assert.equal(job.spec.workers, 2);
  assert.equal(job.name, "resnet-again");
  await site.ask("POST", `/jobs/${copy}/stop`, { grace: "0s" });
  assert.deepEqual(faults, []);
  await close();
});

test("the first start prints a way in, which works once", async () => {
  const link = /http\S+\/sign-in#link=\S+/.exec(site.said())?.[0];
  const { page, faults, close } = await openPage(browser, site);
  await page.goto(link);
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.getByRole("link", { name: "admin", exact: true }).waitFor();
  assert.deepEqual(faults, []);
  await close();
  const second = await openPage(browser, site);
  await second.page.goto(link);
  await second.page.getByRole("alert").waitFor();
  await second.close();
});

test("a quota is changed, and holds from the next job on", async () => {
  const { page, faults, close } = await window();
  await page.getByRole("link", { name: "Workspaces" }).click();
  await page.getByRole("button", { name: "Create workspace" }).click();
  const form = page.getByRole("form", { name: "Quota" });
  await form.getByLabel("Workspace").fill("vision");
  await form.getByLabel("Limit: Ascend").fill("2");
  await form.getByRole("button", { name: "Save" }).click();
  const vision = page.getByRole("region", { name: "vision" });
  await vision.getByText("limit 2").waitFor();

  const run = (name) =>
    site.submit({ name, workspace: "vision", command: "sleep 1000", devices: { kind: "ascend", count: 1 } });
  const [one, two, three] = [await run("quota-one"), await run("quota-two"), await run("quota-three")];
  await site.jobWhen(one.id, (job) => job.state === "running");
  await site.jobWhen(two.id, (job) => job.state === "running");
  await page.goto(`/jobs/${three.id}`);
  await page.getByRole("heading", { name: "workspace limit reached" }).waitFor();

  await page.getByRole("link", { name: "Workspaces" }).click();
  await page.getByRole("button", { name: "Edit quota of vision" }).click();
  await form.getByLabel("Limit: Ascend").fill("4");
  await form.getByRole("button", { name: "Save" }).click();
  await vision.getByText("limit 4").waitFor();
  await site.jobWhen(three.id, (job) => job.state === "running");
  assert.deepEqual(faults, []);
  await close();
});

test("a queued job says why it waits, and a counter-offer starts", async () => {
  const holder = await site.submit({
    name: "holder",
    command: "sleep 1000",
    devices: { kind: "nvidia", count: 2 },
  });
  await site.jobWhen(holder.id, (job) => job.state === "running");
  const { page, faults, close } = await window();
  await submitInForm(page, { name: "waits", command: "sleep 1000", devices: "NVIDIA A100-80G", count: 4 });
  await page.getByText("The job would be queued.").waitFor();
  await send(page);
  const why = page.getByRole("region", { name: "Waiting reason" });
  await why.getByRole("link", { name: "holder" }).waitFor();
  await why.getByText("2 of 4 free").waitFor();
  const waiting = Number(page.url().split("/").at(-1));
  await why.getByRole("button", { name: "Apply" }).first().click();
  await inState(page, "Running");
  const job = await site.jobWhen(waiting, (view) => view.state === "running");
  assert.ok(job.spec.devices.count < 4);
  assert.deepEqual(faults, []);
  await close();
});

test("a large job waits for approval, and starts once it is approved", async () => {
  await site.ask("PUT", "/workspaces/careful", { approve_above: { ascend: 1 } });
  await site.ask("PUT", "/workspaces/careful/members/mary", { role: "member" });
  const devices = { kind: "ascend", count: 2 };
  // Administrators answer for every workspace, so somebody else has to ask.
  const session = await fetch(`${site.address}/api/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "mary", password: PASSWORD }),
  });
  const { secret } = await session.json();
  const asked = await fetch(`${site.address}/api/v1/jobs`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      name: "large",
      workspace: "careful",
      command: "sleep 1000",
      cpus: "10m",
      devices,
    }),
  });
  assert.equal(asked.status, 201, await asked.clone().text());
  const { id } = await asked.json();
  const { page, faults, close } = await window();
  await page.goto(`/jobs/${id}`);
  await page.getByRole("button", { name: "Approve" }).click();
  await inState(page, "Running");
  assert.deepEqual(faults, []);
  await close();
});

test("what a job wrote is listed and taken along", async () => {
  const job = await site.submit({
    name: "writes",
    command: "mkdir $DANLU_OUTPUT_DIR/model; echo weights > $DANLU_OUTPUT_DIR/model/final.bin",
  });
  await site.jobWhen(job.id, (view) => view.outcome === "succeeded");
  const { page, faults, close } = await window();
  await page.goto(`/jobs/${job.id}/files`);
  await page.getByRole("link", { name: "model/" }).click();
  const waiting = page.waitForEvent("download");
  await page.getByRole("link", { name: "final.bin" }).click();
  const download = await waiting;
  assert.equal(readFileSync(await download.path(), "utf8"), "weights\n");
  assert.deepEqual(faults, []);
  await close();
});

test("a history is replayed on more machines", async () => {
  const { page, faults, close } = await window();
  await page.getByRole("link", { name: "Simulation" }).click();
  await page.getByRole("button", { name: "Simulate" }).click();
  const table = page.getByRole("table", { name: "Results" });
  await table.waitFor();
  await table.getByRole("columnheader", { name: "One more node" }).waitFor();
  const capacity = await table.getByRole("row", { name: /^Devices/ }).textContent();
  assert.match(capacity, /20 \(3\).*28 \(4\)/);
  await page.getByRole("region", { name: "Allocation rate over time (hours)" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("jobs are found by tab, name and owner, and stopped together", async () => {
  for (const name of ["bulk-one", "bulk-two"]) {
    const job = await site.submit({ name, command: "sleep 1000" });
    await site.jobWhen(job.id, (view) => view.state === "running");
  }
  const { page, faults, close } = await window();
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page
    .getByRole("navigation", { name: "States" })
    .getByRole("link", { name: /^Running/ })
    .click();
  await page.getByLabel("Search by name").fill("bulk-");
  await page.waitForURL(/tab=running&search=bulk-/);
  const table = page.getByRole("table", { name: "Jobs" });
  await table.getByRole("link", { name: "bulk-two" }).waitFor();
  await table.getByRole("row").nth(3).waitFor({ state: "detached" });
  for (const box of await table.getByRole("checkbox").all()) await box.check();
  await page.getByRole("button", { name: "Stop 2" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByText("No matching jobs").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("somebody asks for an account, and an administrator approves it", async () => {
  const guest = await openPage(browser, site);
  await guest.page.goto("/register");
  await guest.page.getByLabel("Name").fill("grace");
  await guest.page.getByLabel("Password", { exact: true }).fill("a long enough password");
  await guest.page.getByRole("button", { name: "Register" }).click();
  await guest.page.getByText("An administrator must approve").waitFor();

  const { page, faults, close } = await window();
  await page.getByRole("link", { name: "Accounts" }).first().click();
  await page.getByRole("button", { name: "Approve grace" }).click();
  await page.getByRole("row", { name: /grace/ }).getByText("Active").waitFor();
  await signIn(guest.page, "grace");
  assert.deepEqual([...faults, ...guest.faults], []);
  await guest.close();
  await close();
});

test("a node is closed with a reason, and what cannot be done says why", async () => {
  const { page, faults, close } = await window();
  await page.getByRole("link", { name: "Nodes" }).click();
  await page.getByRole("table", { name: "Nodes" }).getByRole("link").first().click();
  await page.getByRole("button", { name: "Cordon" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("new fans");
  await dialog.getByRole("button", { name: "Cordon" }).click();
  await page.getByText("Cordoned: new fans").waitFor();
  await page.getByRole("button", { name: "Uncordon" }).click();
  await page.getByRole("button", { name: "Cordon" }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("the language is switched and kept", async () => {
  const { page, faults, close } = await window();
  await page.getByLabel("Language").selectOption("zh");
  await page.getByRole("link", { name: "任务", exact: true }).click();
  await page.getByRole("heading", { name: "任务" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "任务" }).waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "zh");
  assert.deepEqual(faults, []);
  await close();
});

test("why a job waits is said in Chinese, with its numbers", async () => {
  const holder = await site.submit({
    name: "front",
    command: "sleep 1000",
    devices: { kind: "ascend", count: 1 },
  });
  await site.jobWhen(holder.id, (view) => view.state === "running");
  const job = await site.submit({
    name: "too-much",
    command: "true",
    workers: 2,
    devices: { kind: "ascend", model: "910B3", count: 8 },
  });
  await site.jobWhen(job.id, (view) => view.reason.code === "devices_busy");
  const { page, faults, close } = await window();
  await page.getByLabel("Language").selectOption("zh");
  await page.goto(`/jobs/${job.id}`);
  const why = page.getByRole("region", { name: "等待原因" });
  await why.getByText(/等待 2 个 Worker，每个 8 卡 Ascend 910B3（空闲 \d+ 卡/).waitFor();
  assert.doesNotMatch(await why.textContent(), /waiting|free|devices/);
  for (const { id } of [job, holder]) await site.ask("POST", `/jobs/${id}/stop`, { grace: "0s" });
  assert.deepEqual(faults, []);
  await close();
});

test("pages carry headers that keep other people's scripts out", async () => {
  const answer = await fetch(`${site.address}/jobs/7`, { headers: { accept: "text/html" } });
  const policy = answer.headers.get("content-security-policy");
  assert.match(policy, /script-src 'self';/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  const page = await answer.text();
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1];
  const asset = await fetch(site.address + script, { headers: { "accept-encoding": "gzip" } });
  assert.match(asset.headers.get("cache-control"), /immutable/);
  assert.equal(asset.headers.get("content-encoding"), "gzip");
  const program = await fetch(`${site.address}/jobs/7`, { headers: { accept: "application/json" } });
  assert.equal(program.status, 404);
});
