// What people keep when things around the console change: the server goes away, the window is narrow, a panel opens.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage, PICTURES, signIn, startBrowser, startSite } from "./site.mjs";

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

async function window(options) {
  const opened = await openPage(browser, site, options);
  await signIn(opened.page, "ada");
  return opened;
}

const away = (page) => page.getByText("The server is not responding.");
const command = (page) => page.getByRole("textbox", { name: "Command" });

test("a restart of the server takes neither the page nor what was typed", async () => {
  const { page, close } = await window();
  await page.getByRole("link", { name: "Submit" }).first().click();
  await command(page).fill("half-typed");
  await site.goAway();
  await away(page).waitFor();
  assert.equal(await command(page).inputValue(), "half-typed");
  assert.ok(await page.getByRole("link", { name: "Jobs" }).first().isVisible());
  await page.screenshot({ path: `${PICTURES}server-away.png` });
  await site.comeBack();
  await away(page).waitFor({ state: "detached" });
  assert.equal(await command(page).inputValue(), "half-typed");
  await page.reload();
  await command(page).waitFor();
  assert.equal(await command(page).inputValue(), "half-typed", "drafts outlive a reload");
  await page.getByRole("link", { name: "Jobs" }).first().click();
  await page.getByRole("link", { name: "Submit" }).first().click();
  assert.equal(await command(page).inputValue(), "half-typed", "and a look at another page");
  await close();
});

test("errors of Python are found, and the end of the log stays in sight", async () => {
  const script =
    "i=0; while [ $i -lt 300 ]; do echo line $i; echo ::danlu progress 0.5; i=$((i+1)); done; " +
    "echo Traceback; echo 'RuntimeError: CUDA out of memory'; exit 1";
  const { id } = await site.submit({ name: "broken", command: script });
  await site.jobWhen(id, (job) => job.state === "ended");
  const { page, close } = await window();
  await page.goto(`/jobs/${id}/logs`);
  const log = page.getByRole("region", { name: "Log", exact: true });
  await log.getByText("RuntimeError: CUDA out of memory").waitFor();
  assert.equal(await log.getByText("::danlu progress").count(), 0, "reports are hidden");
  await page.getByRole("button", { name: "Find errors" }).click();
  await page.locator("section.hits").getByText("RuntimeError: CUDA out of memory").waitFor();
  await page.screenshot({ path: `${PICTURES}log-errors.png` });
  await page.waitForFunction(() => {
    const box = document.querySelector("section.log");
    return box && box.scrollHeight - box.scrollTop - box.clientHeight < 2;
  });
  await close();
});

test("states are to be seen in windows of any width", async () => {
  await site.submit({ name: "a-job-with-a-rather-long-name", command: "true", workspace: "default" });
  for (const width of [390, 768, 900, 1000, 1100, 1280, 1440]) {
    const { page, close } = await window({ viewport: { width, height: 800 } });
    await page.goto("/jobs");
    const state = page.locator("table.list tbody tr:not(.spacer) .state").first();
    await state.waitFor();
    const cell = await state.evaluate((element) => element.closest("td").getBoundingClientRect().toJSON());
    assert.ok(cell.width >= 110 && cell.right <= width + 1, `${width}: ${JSON.stringify(cell)}`);
    if (width < 1100) await page.screenshot({ path: `${PICTURES}jobs-${width}.png` });
    await close();
  }
});
