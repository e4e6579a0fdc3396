// Figures of the console in a real browser: first paint on a slow machine, 10,000 jobs, a log of 5 million lines.
// `DANLU_BINARY=… node e2e/bench.mjs [paint|log|jobs]`; prints a table, and fails where a figure misses its mark.
import { openPage, signIn, startBrowser, startSite } from "./site.mjs";

const JOBS = 10_000;
const LINES = 5_000_000;
const SLOWER = 4;
const RUNS = 5;

const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
const rows = [];
const figure = (name, value, unit, most) => {
  rows.push({ name, value, unit, most });
  console.log(
    `${name}: ${value.toFixed(0)} ${unit}${most === undefined ? "" : ` (at most ${most} ${unit})`}`,
  );
};

/** Notes when something of a page was first painted: the frame after it came into the document. */
function notePaint(selector) {
  new MutationObserver((_, observer) => {
    if (!document.querySelector(selector)) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.paintedAt = performance.now())));
  }).observe(document, { childList: true, subtree: true });
}

/** From the request for a page until the named part of it is painted, with an empty cache, in milliseconds. */
async function paintTimes(browser, site, { path, selector, storageState }) {
  const { page, close } = await openPage(browser, site, { storageState });
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  await page.addInitScript(notePaint, selector);
  await page.goto(path);
  await page.waitForFunction(() => window.paintedAt !== undefined);
  const times = await page.evaluate(() => ({
    first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
    whole: window.paintedAt,
  }));
  await close();
  return times;
}

async function firstPaint(browser, site) {
  const { page, close } = await openPage(browser, site);
  await signIn(page, "ada");
  const storageState = await page.context().storageState();
  await close();
  const signInPage = { path: "/sign-in", selector: "main form button" };
  // The grid of devices: what the page was opened for, and what needs the server's answers.
  const overview = { path: "/", selector: ".cells .cell", storageState };
  const all = { signIn: [], overview: [] };
  for (let run = 0; run < RUNS; run += 1) {
    all.signIn.push(await paintTimes(browser, site, signInPage));
    all.overview.push(await paintTimes(browser, site, overview));
  }
  const middle = (times, which) => median(times.map((each) => each[which]));
  const how = `processor ${SLOWER}× slower, empty cache, median of ${RUNS}`;
  figure(`first contentful paint (the product's name), ${how}`, middle(all.signIn, "first"), "ms", 1000);
  // Nobody set a mark for these, but they are what people wait for.
  figure("the form to sign in is painted, the same way", middle(all.signIn, "whole"), "ms");
  figure("the Overview with its devices is painted, the same way", middle(all.overview, "whole"), "ms");
}

/** Scrolls through everything that is loaded, a screen's part each frame; the longest gap between frames. */
function scrollThrough() {
  return new Promise((resolve) => {
    const box = document.querySelector(".table-box");
    const gaps = [];
    let last = performance.now();
    let still = 0;
    const step = (now) => {
      gaps.push(now - last);
      last = now;
      const before = box.scrollTop;
      box.scrollTop += 240;
      still = box.scrollTop === before ? still + 1 : 0;
      // The end, and nothing came for a while: all is loaded.
      if (still > 120) {
        const late = gaps.slice(1).filter((gap) => gap > 50).length;
        const rows = Number(document.querySelector("table.list").getAttribute("aria-rowcount")) - 1;
        resolve({ worst: Math.max(...gaps.slice(1)), late, frames: gaps.length, rows });
      } else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

/** Milliseconds of processor time of the longest task on the page's own thread. */
function longestTask(events) {
  const isMain = ({ name, args }) => name === "thread_name" && args.name === "CrRendererMain";
  const threads = new Set(events.filter(isMain).map(({ pid, tid }) => `${pid}.${tid}`));
  const own = events.filter(({ ph, pid, tid }) => ph === "X" && threads.has(`${pid}.${tid}`));
  return own.reduce((most, { tdur = 0 }) => Math.max(most, tdur / 1000), 0);
}

async function manyJobs(browser, site) {
  await site.submit({ name: "holder", command: "sleep 10000", devices: { kind: "nvidia", count: 4 } });
  const submitted = performance.now();
  let next = 0;
  const client = async () => {
    while (next < JOBS) {
      next += 1;
      await site.submit({ name: `sweep-${next}`, command: "true", devices: { kind: "nvidia", count: 4 } });
    }
  };
  await Promise.all(Array.from({ length: 32 }, client));
  console.log(`submitted ${JOBS} jobs in ${((performance.now() - submitted) / 1000).toFixed(1)} s`);
  const { page, close } = await openPage(browser, site);
  await signIn(page, "ada");
  await page.goto("/jobs?search=sweep");
  await page.getByRole("link", { name: `sweep-${JOBS}` }).waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value;
  };
  const before = await busy();
  await browser.startTracing(page, { categories: ["toplevel"] });
  const { worst, late, frames, rows } = await page.evaluate(scrollThrough);
  const longest = longestTask(JSON.parse(String(await browser.stopTracing())).traceEvents);
  // The page's own time, which other programs of the machine do not lengthen.
  figure(
    "what a frame of that costs the page's thread, mean",
    ((await busy()) - before) * (1000 / frames),
    "ms",
    16,
  );
  figure("the longest task of the page's thread, by the processor time it took", longest, "ms", 50);
  console.log(`${rows} rows in ${frames} frames, ${late} of them later than 50 ms`);
  figure(`longest frame while scrolling through ${JOBS} jobs`, worst, "ms", 50);
  await close();
}

async function longLog(browser, site) {
  const job = await site.submit({
    name: "long",
    command: `seq -f 'step %.0f of a long training' ${LINES}`,
    cpus: "1",
  });
  const until = Date.now() + 300_000;
  while ((await site.ask("GET", `/jobs/${job.id}`)).state !== "ended") {
    if (Date.now() > until) throw new Error("the long log was not written in time");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const { page, close } = await openPage(browser, site);
  await signIn(page, "ada");
  const times = [];
  for (let run = 0; run < RUNS; run += 1) {
    await page.goto(`/jobs/${job.id}/spec`);
    await page.getByRole("heading", { name: "Spec" }).waitFor();
    const began = performance.now();
    await page.getByRole("link", { name: "Logs", exact: true }).click();
    await page.getByRole("region", { name: "Log", exact: true }).getByText(`step ${LINES} of`).waitFor();
    times.push(performance.now() - began);
  }
  figure(`a log of ${LINES} lines opens at its end, first time`, times[0], "ms", 500);
  figure(`the same again, median of ${RUNS}`, median(times), "ms", 500);
  await close();
}

const PARTS = { paint: firstPaint, log: longLog, jobs: manyJobs };
const site = await startSite();
const browser = await startBrowser();
try {
  await site.account("ada", true);
  for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PARTS)) {
    await PARTS[name](browser, site);
  }
} finally {
  await browser.close();
  await site.stop();
}
console.log("\n| figure | | at most |\n|---|---:|---:|");
for (const { name, value, unit, most } of rows)
  console.log(`| ${name} | ${value.toFixed(0)} ${unit} | ${most === undefined ? "" : `${most} ${unit}`} |`);
if (rows.some(({ value, most }) => most !== undefined && !(value <= most))) process.exitCode = 1;
