// How people come in, what they bring along and whom they let in: by role and label, against the real server.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openPage, PASSWORD, prove, signIn, startBrowser, startSite } from "./site.mjs";

/** The provider that the server's own tests use. */
const PROVIDER = new URL("../../crates/danlu/tests/people/provider.py", import.meta.url).pathname;

let site;
let browser;
let provider;
let providerAddress;

before(async () => {
  provider = spawn("python3", [PROVIDER], { stdio: ["pipe", "pipe", "inherit"] });
  const [port] = await once(provider.stdout, "data");
  providerAddress = `http://127.0.0.1:${String(port).trim()}`;
  site = await startSite((data) => {
    writeFileSync(join(data, "provider-secret"), "a shared secret\n");
    const settings = {
      issuer: providerAddress,
      client_id: "danlu",
      client_secret_file: join(data, "provider-secret"),
      groups: { "vision-team": [{ workspace: "vision", role: "member" }] },
    };
    writeFileSync(join(data, "oidc.yaml"), JSON.stringify(settings));
    return ["--oidc", join(data, "oidc.yaml")];
  });
  browser = await startBrowser();
  await site.ask("PUT", "/workspaces/vision", {});
  for (const name of ["ada", "mary", "tim"]) await site.account(name);
  await site.ask("PUT", "/workspaces/vision/members/ada", { role: "owner" });
});
after(async () => {
  await browser?.close();
  await site?.stop();
  provider?.kill();
});

async function enter(name) {
  const opened = await openPage(browser, site);
  await signIn(opened.page, name);
  return opened;
}

async function removeRow(page, table, row) {
  await page.getByRole("table", { name: table }).getByRole("row", { name: row }).getByRole("button").click();
  await page
    .getByRole("dialog")
    .getByRole("button", { name: /^(Remove|Revoke)$/ })
    .click();
  await page
    .getByRole("table", { name: table })
    .getByRole("row", { name: row })
    .waitFor({ state: "detached" });
}

/** One line of a `.pub` file (RFC 8709). */
function publicKey(comment) {
  const { x } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const part = (bytes) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const key = Buffer.concat([part(Buffer.from("ssh-ed25519")), part(Buffer.from(x, "base64url"))]);
  return `ssh-ed25519 ${key.toString("base64")} ${comment}`;
}

test("keys for SSH and for the object store are added, shown and removed", async () => {
  const { page, faults, close } = await enter("mary");
  await page.getByRole("link", { name: "mary", exact: true }).click();
  await page.getByLabel("Public key (one line of a .pub file)").fill(publicKey("mary@laptop"));
  await page.getByRole("button", { name: "Add SSH key" }).click();
  await prove(page, "not her password");
  const dialog = page.getByRole("dialog", { name: "Confirm your identity" });
  await dialog.getByText("is not the password of this account").waitFor();
  await prove(page);
  await page.getByRole("table", { name: "SSH keys" }).getByText("SHA256:").waitFor();
  assert.equal((await site.ask("GET", "/accounts/mary/ssh_keys")).items[0].name, "mary@laptop");
  await removeRow(page, "SSH keys", /mary@laptop/);

  const store = page.getByRole("region", { name: "Object store access keys" }).first();
  await store.getByLabel("Access key name").fill("notebook");
  await store.getByRole("button", { name: "Create access key" }).click();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  await store.getByRole("button", { name: "Create access key" }).click();
  await prove(page);
  const shown = await store.getByRole("status").locator("code").textContent();
  const [accessKey, secretKey] = shown.split(" ");
  assert.ok(secretKey.length >= 20, "the secret is shown once");
  await store.getByRole("row", { name: new RegExp(`notebook.*${accessKey}`) }).waitFor();
  await page.reload();
  await store.getByRole("row", { name: /notebook/ }).waitFor();
  assert.equal(await page.getByText(secretKey).count(), 0, "and never again");
  await removeRow(page, "Object store access keys", /notebook/);
  assert.deepEqual((await site.ask("GET", "/accounts/mary/s3_keys")).items, []);
  // The server refuses first, and so says that it wants a proof.
  assert.deepEqual(
    faults.filter((fault) => !fault.includes("422")),
    [],
  );
  await close();
});

test("an administrator ends a session, makes and deletes accounts, and changes what holds for all", async () => {
  await site.account("root2", true);
  await site.account("leaver");
  const leaver = await enter("leaver");
  const { page, faults, close } = await enter("root2");
  await page.getByRole("link", { name: "Accounts" }).first().click();
  await page.getByRole("button", { name: "Manage leaver" }).click();
  const panel = page.getByRole("region", { name: "Manage leaver" });
  await panel
    .getByRole("row", { name: /session/i })
    .getByRole("button")
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await panel.getByRole("row", { name: /session/i }).waitFor({ state: "detached" });
  await leaver.page.reload();
  await leaver.page.getByRole("button", { name: "Sign in" }).waitFor();
  await leaver.close();

  await panel.getByRole("button", { name: "Make administrator" }).click();
  await prove(page);
  await panel.getByRole("button", { name: "Revoke administrator" }).click();
  await panel.getByRole("button", { name: "Make administrator" }).waitFor();
  await panel.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await panel.waitFor({ state: "detached" });
  await assert.rejects(site.ask("GET", "/accounts/leaver"));

  await page.getByRole("link", { name: "Scheduling policy" }).first().click();
  const before = await site.ask("GET", "/sharing");
  await page.getByLabel("Minimum run time before preemption").fill("soon");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Minimum run time before preemption").fill("7m");
  await page.getByLabel("Limit: NVIDIA", { exact: true }).fill("3");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved. The policy takes effect with the next scheduling pass.").waitFor();
  const after = await site.ask("GET", "/sharing");
  assert.deepEqual(
    [after.minimum_run_time, after.personal.limit.nvidia, after.lending],
    ["7m", 3, before.lending],
  );
  // The answer to what is wrong is a refusal, which a browser counts as a failed request.
  assert.deepEqual(
    faults.filter((fault) => !fault.includes("/sharing") && !fault.includes("422")),
    [],
  );
  await close();
});

test("an owner who is no administrator runs a workspace: members, an invitation, a secret", async () => {
  const { page, faults, close } = await enter("ada");
  assert.equal(await page.getByRole("link", { name: "Accounts" }).count(), 0);
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Members" }).click();
  await page.getByLabel("Account").fill("mary");
  await page.getByLabel("Role").selectOption("viewer");
  await page.getByRole("button", { name: "Set role" }).click();
  await page
    .getByRole("table", { name: "vision" })
    .getByRole("row", { name: /mary.*Viewer/ })
    .waitFor();

  await page.getByLabel("Secret name").fill("HF_TOKEN");
  await page.getByLabel("Value", { exact: true }).fill("hf_very_secret");
  await page.getByRole("button", { name: "Set secret" }).click();
  await page
    .getByRole("table", { name: "Job secrets" })
    .getByRole("row", { name: /HF_TOKEN.*ada/ })
    .waitFor();
  assert.equal(await page.getByText("hf_very_secret").count(), 0);
  const job = await site.submit({
    name: "uses-secret",
    workspace: "vision",
    command: 'test "$HF_TOKEN" = hf_very_secret',
    secrets: { HF_TOKEN: "HF_TOKEN" },
  });
  await site.jobWhen(job.id, (view) => view.outcome === "succeeded");
  await removeRow(page, "Job secrets", /HF_TOKEN/);

  await page.getByRole("button", { name: "Create invitation" }).click();
  const link = await page.getByRole("status").locator("code").textContent();
  const guest = await openPage(browser, site);
  await guest.page.goto(link);
  await guest.page.getByLabel("Name").fill("grace");
  await guest.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await guest.page.getByRole("button", { name: "Register" }).click();
  await guest.page.getByText("Account created.").waitFor();
  await signIn(guest.page, "grace");
  await guest.page.getByRole("link", { name: "Members" }).click();
  await guest.page
    .getByRole("table", { name: "vision" })
    .getByRole("row", { name: /grace.*Member/ })
    .waitFor();
  await guest.page.getByRole("button", { name: "Set role" }).hover();
  await guest.page.getByRole("tooltip", { name: /Only owners of the workspace/ }).waitFor();

  await page.reload();
  await removeRow(page, "vision", /mary/);
  assert.deepEqual([...faults, ...guest.faults], []);
  await guest.close();
  await close();
});

test("an owner lets in who asks for the workspace, and turns others away", async () => {
  const guest = await openPage(browser, site);
  for (const name of ["hedy", "nobody"]) {
    await guest.page.goto("/register");
    await guest.page.getByLabel("Name").fill(name);
    await guest.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await guest.page.getByLabel("Workspace").fill("vision");
    await guest.page.getByRole("button", { name: "Register" }).click();
    await guest.page.getByText("An owner of the workspace or an administrator").waitFor();
  }
  const { page, faults, close } = await enter("ada");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Members" }).click();
  const asking = page.getByRole("table", { name: "Join requests" });
  await asking
    .getByRole("row", { name: /nobody/ })
    .getByRole("button", { name: "Decline" })
    .click();
  await page.getByRole("dialog").getByRole("button", { name: "Decline" }).click();
  await asking.getByRole("row", { name: /nobody/ }).waitFor({ state: "detached" });
  await asking.getByRole("button", { name: "Approve hedy" }).click();
  await page
    .getByRole("table", { name: "vision" })
    .getByRole("row", { name: /hedy.*Member/ })
    .waitFor();
  await page.getByText("No join requests.").waitFor();
  await signIn(guest.page, "hedy");
  assert.deepEqual([...faults, ...guest.faults], []);
  await guest.close();
  await close();
});

/** RFC 6238 with what every authenticator has: six digits, 30 seconds, SHA-1. */
function codeAt(secret, step) {
  const bits = [...secret.replaceAll(/[\s=]/g, "")]
    .map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0"))
    .join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const tag = createHmac("sha1", key).update(counter).digest();
  const word = tag.readUInt32BE(tag[19] & 0x0f) & 0x7fffffff;
  return String(word % 1_000_000).padStart(6, "0");
}

test("an authenticator is set up, asked for, and given up", async () => {
  const { page, faults, close } = await enter("tim");
  await page.getByRole("link", { name: "tim", exact: true }).click();
  // The form to link an identity asks for a password and a code, too.
  const form = page
    .locator("form")
    .filter({ has: page.getByRole("heading", { name: "Multi-factor authentication (MFA)" }) });
  await form.getByLabel("Current password").fill(PASSWORD);
  await form.getByRole("button", { name: "Enable MFA" }).click();
  const secret = await form.locator("code").textContent();
  const step = Math.floor(Date.now() / 30_000);
  await form.getByLabel("MFA code").fill(codeAt(secret, step));
  await form.getByRole("button", { name: "Confirm" }).click();
  const codes = await form.getByRole("status").locator("code").textContent();
  await form.getByText("Each sign-in requires an MFA code.").waitFor();

  const again = await openPage(browser, site);
  await again.page.goto("/sign-in");
  await again.page.getByLabel("Name").fill("tim");
  await again.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await again.page.getByRole("button", { name: "Sign in" }).click();
  // A code is good once, and those of the next half minute are good already.
  await again.page.getByLabel("MFA code").fill(codeAt(secret, step + 1));
  await again.page.getByRole("button", { name: "Sign in" }).click();
  await again.page.getByRole("navigation", { name: "Main" }).waitFor();
  await again.close();

  await form.getByLabel("MFA code").fill(codes.split(" ")[0]);
  await form.getByRole("button", { name: "Disable MFA" }).click();
  await form.getByText("Sign-in requires only the password.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("somebody whom the provider knows comes in through it, into the workspaces of their groups", async () => {
  const claims = { sub: "person-1", preferred_username: "lin", name: "Lin", groups: ["vision-team"] };
  await fetch(`${providerAddress}/person`, { method: "POST", body: JSON.stringify(claims) });
  const { page, faults, close } = await openPage(browser, site);
  await page.goto("/sign-in");
  await page.getByRole("link", { name: "Sign in with SSO" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.getByRole("link", { name: "lin", exact: true }).click();
  await page.getByText("vision (Member)").waitFor();
  assert.deepEqual(
    faults.filter((fault) => !fault.startsWith(`left the server: ${providerAddress}/authorize`)),
    [],
  );
  await close();
});
