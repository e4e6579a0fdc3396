// A real server with a simulated inventory, and a real Chromium that watches what it does wrong.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const PASSWORD = "a long enough password";
export const PICTURES = new URL("../pictures/", import.meta.url).pathname;
const SIMULATED = "2x8:ascend:910B3,1x4:nvidia:A100-80G";
const READY_MS = 60_000;

const binary = process.env.DANLU_BINARY;
if (!binary) throw new Error("set DANLU_BINARY to the danlu that is to be tested");

/** Asks until there is an answer; nothing here waits for a time of its own choosing. */
async function eventually(what, ask) {
  const until = Date.now() + READY_MS;
  for (;;) {
    const answer = await ask().catch(() => undefined);
    if (answer !== undefined) return answer;
    if (Date.now() > until) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** `prepare` gets the data folder before the server starts: what an earlier server left there. It may answer with more flags. */
export async function startSite(prepare = () => []) {
  const folder = mkdtempSync(join(tmpdir(), "danlu-console-"));
  const data = join(folder, "data");
  mkdirSync(data);
  const flags = ["--data", data, "--simulate", SIMULATED, "--registration", "open", ...(prepare(data) ?? [])];
  let said = "";
  let server;
  const start = async (listen) => {
    server = spawn(binary, ["up", "--listen", listen, ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, RUST_LOG: "warn" },
    });
    const { pid } = server;
    server.stdout.on("data", (text) => (said += text));
    server.stderr.on("data", (text) => (said += text));
    return eventually("the server", async () => {
      const file = JSON.parse(readFileSync(join(data, "server.json"), "utf8"));
      return file.pid === pid && (await fetch(`${file.address}/readyz`)).ok ? file.address : undefined;
    }).catch((error) => {
      throw new Error(`${error.message}; it said: ${said}`);
    });
  };
  const end = async () => {
    const over = new Promise((resolve) => server.on("exit", resolve));
    server.kill("SIGTERM");
    await over;
  };
  const address = await start("127.0.0.1:0");
  const token = readFileSync(join(data, "token"), "utf8").trim();

  const ask = async (method, path, body) => {
    const answer = await fetch(`${address}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };
  const site = {
    address,
    data,
    ask,
    said: () => said,
    /** Ends the server and leaves its data; `comeBack` starts it at the same address. */
    goAway: end,
    comeBack: () => start(new URL(address).host),
    /** A job, as the API shows it, once it is as wanted. */
    jobWhen: (id, wanted) =>
      eventually(`job ${id}`, async () => {
        const job = await ask("GET", `/jobs/${id}`);
        return wanted(job) ? job : undefined;
      }),
    submit: (spec) => ask("POST", "/jobs", { cpus: "10m", ...spec }),
    account: async (name, isAdmin = false) => {
      await ask("POST", "/accounts", { name, password: PASSWORD });
      if (isAdmin) await ask("PATCH", `/accounts/${name}`, { admin: true });
    },
    stop: async () => {
      // A page at a time, until there is nothing left: jobs that wait come first, so that none starts in between.
      await eventually("all jobs to end", async () => {
        for (const state of ["held,queued", "starting,running,stopping"]) {
          const { items } = await ask("GET", `/jobs?state=${state}&limit=1000`);
          await Promise.all(
            items.map((job) => ask("POST", `/jobs/${job.id}/stop`, { grace: "0s" }).catch(() => {})),
          );
        }
        const left = await ask("GET", "/jobs/counts?state=held,queued,starting,running,stopping");
        return Object.keys(left.by_state).length === 0 ? true : undefined;
      });
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return site;
}

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

export async function startBrowser() {
  if (!CHROMIUM) throw new Error("no Chromium; on Debian: apt-get install chromium");
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // By this name a page has come from afar, over a way that anybody could listen to.
      "--host-resolver-rules=MAP danlu.lab.example 127.0.0.1",
    ],
  });
}

/** A fresh window. `faults` fills with what a developer would see in red. */
export async function openPage(browser, site, options = {}) {
  const context = await browser.newContext({
    baseURL: site.address,
    viewport: { width: 1280, height: 800 },
    locale: "en-GB",
    ...options,
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("response", (response) => {
    if (response.status() >= 400)
      faults.push(`${response.status()} ${response.request().method()} ${response.url()}`);
  });
  page.on("requestfailed", (request) => {
    // Pages that are left behind give up their questions and their streams.
    if (request.failure()?.errorText !== "net::ERR_ABORTED") faults.push(`failed: ${request.url()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(site.address) && !/^(data|blob):/.test(url)) faults.push(`left the server: ${url}`);
  });
  return { page, faults, close: () => context.close() };
}

/** Fills in the dialog that asks whose session it is. */
export async function prove(page, password = PASSWORD) {
  const dialog = page.getByRole("dialog", { name: "Confirm your identity" });
  await dialog.getByLabel("Current password").fill(password);
  await dialog.getByRole("button", { name: "Confirm" }).click();
}

export async function signIn(page, name) {
  await page.goto("/sign-in");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

export async function picture(page, name) {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: `${PICTURES}${name}.png` });
}
