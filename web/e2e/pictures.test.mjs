// Every page, in both languages and one of them in the dark: looked at by axe here, and by people in pictures/.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openPage, picture, signIn, startBrowser, startSite } from "./site.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let site;
let browser;
let ids;

/** A cluster in the middle of a day. */
async function populate() {
  await site.account("ada", true);
  await site.account("grace");
  await site.ask("PUT", "/workspaces/vision", { limit: { ascend: 12 } });
  await site.ask("PUT", "/workspaces/vision/members/grace", { role: "owner" });
  await site.ask("PUT", "/workspaces/vision/secrets/HF_TOKEN", { value: "secret" });
  const talk =
    'i=0; while :; do i=$((i+1)); echo "epoch $i: loss $((1000/i)).0 \\033[32mok\\033[0m"; ' +
    'echo "::danlu metric loss=$((1000/i)) accuracy=0.$((i%100)) step=$i"; echo "::danlu progress 0.4$((i%10))"; sleep 0.2; done';
  const run = (name, rest) => site.submit({ name, command: talk, ...rest });
  const ascend = (count) => ({ devices: { kind: "ascend", model: "910B*", count } });
  const resnet = await run("resnet50-imagenet", { ...ascend(8), framework: "pytorch", preemptible: true });
  await run("bert-pretrain", { ...ascend(4), framework: "mindspore" });
  await run("llama-finetune", { devices: { kind: "nvidia", count: 2 }, framework: "pytorch" });
  const queued = await run("gpt-pretrain", {
    ...ascend(8),
    workers: 2,
    framework: "pytorch",
    max_time: "24h",
  });
  const failed = await site.submit({
    name: "bad-import",
    command: "echo starting; echo 'ModuleNotFoundError: No module named torchvision' >&2; exit 1",
  });
  const written = await site.submit({
    name: "preprocess",
    command:
      "echo tokenised 1,204,331 documents; mkdir -p $DANLU_OUTPUT_DIR/shards; seq 100000 > $DANLU_OUTPUT_DIR/tokens.txt",
  });
  await site.jobWhen(written.id, (job) => job.state === "ended");
  await site.jobWhen(resnet.id, (job) => job.state === "running");
  await site.jobWhen(failed.id, (job) => job.state === "ended");
  await site.jobWhen(resnet.id, (job) => job.progress?.metrics?.loss !== undefined);
  return { running: resnet.id, queued: queued.id, failed: failed.id, written: written.id };
}

/** A day of the cluster's use, as an earlier server would have kept it. */
function rememberUse(data) {
  const now = Date.now();
  const lines = Array.from({ length: 288 }, (_, index) => {
    const hours = (index - 288) / 12;
    const held = (total, phase) => Math.round(total * (0.55 + 0.4 * Math.sin(hours / 3 + phase)));
    const of = (kind, model, total, phase) => {
      const busy = Math.max(0, 100 * (held(total, phase) / total) - 8 - 4 * Math.sin(index));
      return { kind, model, total, usable: total, held: held(total, phase), busy };
    };
    const devices = [of("ascend", "910B3", 16, 0), of("nvidia", "A100-80G", 4, 1.5)];
    return JSON.stringify({
      at: new Date(now + hours * 3_600_000).toISOString(),
      queued: 3,
      running: 5,
      devices,
    });
  });
  writeFileSync(join(data, "usage.jsonl"), `${lines.join("\n")}\n`);
}

before(async () => {
  site = await startSite(rememberUse);
  browser = await startBrowser();
  ids = await populate();
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

const pages = () => [
  ["overview", "/"],
  ["jobs", "/jobs"],
  ["submit", "/submit"],
  ["job", `/jobs/${ids.running}`],
  ["job-queued", `/jobs/${ids.queued}`],
  ["job-failed", `/jobs/${ids.failed}`],
  ["logs", `/jobs/${ids.running}/logs`],
  ["logs-search", `/jobs/${ids.failed}/logs?search=Error`],
  ["metrics", `/jobs/${ids.running}/metrics`],
  ["ranks", `/jobs/${ids.running}/ranks`],
  ["events", `/jobs/${ids.running}/events`],
  ["files", `/jobs/${ids.written}/files`],
  ["spec", `/jobs/${ids.running}/spec`],
  ["terminal", `/jobs/${ids.running}/terminal`],
  ["nodes", "/nodes"],
  ["node", "/nodes/sim-1"],
  ["quotas", "/quotas"],
  ["simulate", "/simulate"],
  ["migrate", "/migrate"],
  ["profile", "/profile"],
  ["accounts", "/admin/accounts"],
  ["members", "/members?workspace=vision"],
  ["audit", "/admin/audit"],
  ["settings", "/admin/settings"],
  ["lost", "/nowhere"],
];

/** What axe finds that keeps somebody from using the page. */
async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"] }),
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .map((node) => `${node.target} (${node.any[0]?.message ?? node.html})`)
          .slice(0, 3)
          .join(" | ")}`,
    );
}

async function settled(page) {
  await page.waitForFunction(() => !document.querySelector('main [role="status"].note'));
  await page.evaluate(() => document.fonts.ready);
}

/** Fills the page with an outcome, of programs that the migrator's own tests train. */
async function migratePrograms(page) {
  const programs = new URL("../../crates/danlu-migrate/tests/executed/programs", import.meta.url).pathname;
  await page.getByLabel(/Choose folder|选择文件夹/).setInputFiles(programs);
  await page.getByRole("button", { name: /^(Migrate|开始迁移)$/ }).click();
  await page.getByRole("region", { name: /^(Changes|修改)$/ }).waitFor();
}

for (const [language, theme] of [
  ["en", "light"],
  ["zh", "dark"],
]) {
  test(`every page in ${language}, ${theme}, is usable by everybody`, async () => {
    const { page, faults, close } = await openPage(browser, site);
    await signIn(page, "ada");
    await page.getByLabel("Theme").selectOption(theme);
    await page.getByLabel("Language").selectOption(language);
    await page.waitForFunction((wanted) => document.documentElement.lang === wanted, language);
    const found = {};
    const node = (await site.ask("GET", "/nodes")).items[0].name;
    for (const [name, path] of pages()) {
      await page.goto(path.replace("sim-1", node));
      await page.getByRole("main").waitFor();
      await settled(page);
      if (name === "terminal") await page.locator(".xterm-screen").waitFor();
      if (name === "migrate") await migratePrograms(page);
      await picture(page, `${name}-${language}`);
      const violations = await findings(page);
      if (violations.length > 0) found[name] = violations;
    }
    assert.deepEqual(found, {});
    assert.deepEqual(faults, []);
    await close();
  });
}

test("pages before signing in are usable by everybody", async () => {
  const { page, close } = await openPage(browser, site);
  const found = {};
  for (const name of ["sign-in", "register", "set-password"]) {
    await page.goto(`/${name}`);
    await page.getByRole("heading").waitFor();
    await picture(page, name);
    const violations = await findings(page);
    if (violations.length > 0) found[name] = violations;
  }
  assert.deepEqual(found, {});
  await close();
});

test("the console can be read on a phone", async () => {
  const { page, close } = await openPage(browser, site, { viewport: { width: 390, height: 844 } });
  await signIn(page, "ada");
  for (const path of ["/", "/jobs", `/jobs/${ids.running}`]) {
    await page.goto(path);
    await page.getByRole("main").waitFor();
    await settled(page);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wider <= 0, `${path} is ${wider} pixels wider than a phone`);
  }
  await picture(page, "phone");
  await close();
});
