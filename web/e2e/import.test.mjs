// Job files and batch scripts are opened on the page that submits jobs: read by the server, shown with their lines.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage, picture, signIn, startBrowser, startSite } from "./site.mjs";

const SCRIPT = `#!/bin/bash
#SBATCH --job-name=llama-sft -p a100
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --gres=gpu:4 --time=2:00:00
srun python train.py
`;

let site;
let browser;

before(async () => {
  site = await startSite();
  browser = await startBrowser();
  await site.account("ada", true);
});
after(async () => {
  await browser?.close();
  await site?.stop();
});

/** What a draft asks for may not be here, or be wrong: the dry run then is refused, which a browser tells in red. */
const unexpected = (faults) => faults.filter((fault) => !fault.includes("422"));

const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });

test("a batch script is chosen, its notes are shown, and it is submitted", async () => {
  const { page, faults, close } = await openPage(browser, site);
  await signIn(page, "ada");
  await page.goto("/submit");
  await page.getByLabel("Open job file").setInputFiles(file("train.sbatch", SCRIPT));
  const report = page.getByRole("status", { name: "Opened file" });
  await report.getByText("train.sbatch was opened.").waitFor();
  await report.getByText("`-p a100` is not honoured").waitFor();
  assert.equal(await page.getByLabel("Name").inputValue(), "llama-sft");
  assert.equal(await page.getByLabel("Workers", { exact: true }).inputValue(), "2");
  await picture(page, "submit-script");
  // Two nodes with four GPUs are not here; one is.
  await page.getByLabel("Workers", { exact: true }).fill("1");
  await page.getByLabel("Workspace").fill("default");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/\/jobs\/\d+$/);
  const job = await site.jobWhen(Number(page.url().split("/").at(-1)), () => true);
  assert.equal(job.spec.max_time, "2h");
  assert.equal(job.spec.command, SCRIPT);
  assert.deepEqual(unexpected(faults), []);
  await close();
});

test("a dropped job file with mistakes shows them at their lines, in both languages", async () => {
  const { page, faults, close } = await openPage(browser, site);
  await signIn(page, "ada");
  for (const [language, refused] of [
    ["en", "job.yaml has 2 errors."],
    ["zh", "job.yaml 有 2 处错误。"],
  ]) {
    if (language === "zh") await page.getByLabel("Language").selectOption(language);
    await page.goto("/submit");
    await page.getByRole("button", { name: language === "zh" ? "提交" : "Submit" }).waitFor();
    const dropped = await page.evaluateHandle(() => {
      const files = new DataTransfer();
      files.items.add(new File(["command: x\nmemory: 256Gx\ndvices: {count: 1}\n"], "job.yaml"));
      return files;
    });
    await page.dispatchEvent("body", "drop", { dataTransfer: dropped });
    await page.getByText(refused).waitFor();
    await page.getByText("2:9").waitFor();
    await page.getByText("did you mean `devices`?").waitFor();
    await picture(page, `submit-mistakes-${language}`);
  }
  assert.deepEqual(unexpected(faults), []);
  await close();
});
