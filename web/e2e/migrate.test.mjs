// A project is migrated in the browser, and its copy submitted.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openPage, signIn, startBrowser, startSite } from "./site.mjs";

const TRAIN = `import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.distributed.init_process_group(backend="nccl")
print("trained on", device)
`;

let site;
let browser;
let folder;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "danlu-project-"));
  const project = join(folder, "classifier");
  mkdirSync(join(project, "tools/cache"), { recursive: true });
  writeFileSync(join(project, "train.py"), TRAIN);
  writeFileSync(join(project, "tools/plain.py"), "print('nothing to do')\n");
  writeFileSync(join(project, "tools/cache/left.py"), "x.cuda()\n");
  writeFileSync(join(project, ".gitignore"), "cache/\n");
  execFileSync("tar", [
    "-czf",
    join(folder, "classifier.tar.gz"),
    "-C",
    project,
    "train.py",
    "tools/plain.py",
  ]);
  site = await startSite();
  browser = await startBrowser();
  await site.account("ada");
});
after(async () => {
  await browser?.close();
  await site?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function window(where = site) {
  const opened = await openPage(browser, where);
  await signIn(opened.page, "ada");
  await opened.page.getByRole("link", { name: "Code migration" }).click();
  return opened;
}

test("a page that a proxy hands on over plain HTTP migrates and submits too", async () => {
  const address = site.address.replace("127.0.0.1", "danlu.lab.example");
  const { page, faults, close } = await window({ ...site, address });
  assert.equal(await page.evaluate(() => window.isSecureContext), false);
  await page.getByLabel("Choose folder").setInputFiles(join(folder, "classifier"));
  await page.getByRole("button", { name: "Migrate" }).click();
  await page.getByRole("button", { name: "Submit migrated code" }).click();
  await page.getByRole("textbox", { name: "Command" }).fill("grep -c npu train.py");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/\/jobs\/\d+$/);
  // The browser says that one of our headers means nothing there.
  assert.deepEqual(
    faults.filter((fault) => !fault.includes("Cross-Origin-Opener-Policy")),
    [],
  );
  await close();
});

test("a folder is migrated, looked at, and submitted", async () => {
  const { page, faults, close } = await window();
  await page.getByLabel("Choose folder").setInputFiles(join(folder, "classifier"));
  await page.getByRole("button", { name: "Migrate" }).click();
  const outcome = page.getByRole("region", { name: "Results" });
  await outcome.waitFor();
  const files = outcome.getByRole("navigation", { name: "Files" });
  await files.getByRole("link", { name: /train\.py/ }).click();
  assert.equal(await files.getByRole("link", { name: /left\.py/ }).count(), 0, "ignored files stay at home");
  const diff = outcome.getByRole("region", { name: "Changes" });
  await diff.getByRole("row", { name: /"cuda" if .*"npu" if/ }).waitFor();
  await diff.getByRole("row", { name: /nccl.*hccl/ }).waitFor();

  const waiting = page.waitForEvent("download");
  await outcome.getByRole("link", { name: "report.json" }).click();
  JSON.parse(readFileSync(await (await waiting).path(), "utf8"));

  await outcome.getByRole("button", { name: "Submit migrated code" }).click();
  await page.waitForURL(/\/submit\?code=sha256/);
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "classifier");
  await page.getByRole("textbox", { name: "Command" }).fill("grep -c npu train.py");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/\/jobs\/\d+$/);
  const id = Number(page.url().split("/").at(-1));
  const job = await site.jobWhen(id, (view) => view.state === "ended");
  assert.equal(job.outcome, "succeeded", JSON.stringify(job.reason));
  assert.equal(job.spec.devices.kind, "ascend");
  assert.deepEqual(faults, []);
  await close();
});

test("an archive is migrated too, and what is none says so", async () => {
  const { page, faults, close } = await window();
  await page.getByLabel("Choose archive").setInputFiles(join(folder, "classifier.tar.gz"));
  await page.getByRole("button", { name: "Migrate" }).click();
  const outcome = page.getByRole("region", { name: "Results" });
  await outcome.getByRole("link", { name: /train\.py/ }).waitFor();
  await page
    .getByLabel("Choose archive")
    .setInputFiles({ name: "notes.rar", mimeType: "application/octet-stream", buffer: Buffer.from("no") });
  await page.getByRole("button", { name: "Migrate" }).click();
  await page.getByRole("alert").getByText("The archive format is not supported.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});
