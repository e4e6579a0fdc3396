/** From what somebody chose, a folder or an archive, to the archive that is uploaded. */
import { unzipSync } from "fflate";
import ignore, { type Ignore } from "ignore";
import { type ProjectFile, stored, tar } from "./archive";

/** More than this is data, or belongs to `danlu migrate`: a browser holds it all in memory, three times. */
export const MOST_BYTES = 256 << 20;

export type Project = { name: string; archive: Uint8Array<ArrayBuffer> };

/** What is wrong with what was chosen; pages have words for each. */
export class NoProject extends Error {
  readonly why: "empty" | "large" | "unknown";
  constructor(why: NoProject["why"]) {
    super(why);
    this.name = "NoProject";
    this.why = why;
  }
}

const IGNORE_FILES = [".gitignore", ".danluignore"];
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

/** Whether a path is to be left out, by the ignore files of the folders above it; as `danlu submit` has it. */
export function leftOut(ignoreFiles: { path: string; text: string }[]): (path: string) => boolean {
  const rules = new Map<string, Ignore>();
  for (const { path, text } of ignoreFiles) {
    const folder = folderOf(path);
    rules.set(folder, (rules.get(folder) ?? ignore()).add(text));
  }
  return (path) =>
    `/${path}`.includes("/.git/") ||
    [...rules].some(([folder, rule]) => path.startsWith(folder) && rule.ignores(path.slice(folder.length)));
}

const isIgnoreFile = (path: string): boolean => IGNORE_FILES.includes(path.slice(folderOf(path).length));

function packed(name: string, files: ProjectFile[]): Project {
  if (files.length === 0) throw new NoProject("empty");
  return { name, archive: stored(tar(files)) };
}

/** The files of a folder, as `<input webkitdirectory>` gives them: each with the folder's name before its path. */
export async function fromFolder(chosen: File[]): Promise<Project> {
  const name = chosen[0]?.webkitRelativePath.split("/")[0] ?? "project";
  const files = chosen.map((file) => ({ file, path: file.webkitRelativePath.slice(name.length + 1) }));
  const rules = await Promise.all(
    files
      .filter(({ path }) => isIgnoreFile(path))
      .map(async ({ file, path }) => ({ path, text: await file.text() })),
  );
  const isLeftOut = leftOut(rules);
  const kept = files.filter(({ path }) => !isLeftOut(path));
  if (kept.reduce((sum, { file }) => sum + file.size, 0) > MOST_BYTES) throw new NoProject("large");
  return packed(
    name,
    await Promise.all(
      kept.map(async ({ file, path }) => ({ path, bytes: new Uint8Array(await file.arrayBuffer()) })),
    ),
  );
}

/** Without the one folder that everything lies in, where there is one, as in archives of a repository. */
export function withoutTop(files: ProjectFile[]): ProjectFile[] {
  const top = files[0]?.path.split("/")[0] ?? "";
  const isShared = files.every(({ path }) => path.startsWith(`${top}/`));
  return isShared ? files.map(({ path, bytes }) => ({ path: path.slice(top.length + 1), bytes })) : files;
}

async function unpressed(file: File): Promise<Uint8Array> {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    size += next.value.length;
    if (size > MOST_BYTES) throw new NoProject("large");
    parts.push(next.value);
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

function unzipped(bytes: Uint8Array): ProjectFile[] {
  let size = 0;
  const isLeftOut = leftOut([]);
  const entries = unzipSync(bytes, {
    filter: ({ name, originalSize }) => {
      size += originalSize;
      if (size > MOST_BYTES) throw new NoProject("large");
      return !name.endsWith("/") && !isLeftOut(name);
    },
  });
  return Object.entries(entries).map(([path, content]) => ({ path, bytes: new Uint8Array(content) }));
}

export async function fromArchive(file: File): Promise<Project> {
  if (file.size > MOST_BYTES) throw new NoProject("large");
  const match = /^(.*)\.(zip|tar|tar\.gz|tgz|tar\.zst)$/i.exec(file.name);
  if (!match) throw new NoProject("unknown");
  const [, name = "project", kind = ""] = match;
  const whole = async () => new Uint8Array(await file.arrayBuffer());
  switch (kind.toLowerCase()) {
    case "zip":
      return packed(name, withoutTop(unzipped(await whole())));
    case "tar":
      return { name, archive: stored(await whole()) };
    case "tar.zst":
      return { name, archive: await whole() };
    default:
      return { name, archive: stored(await unpressed(file)) };
  }
}

/** `sha256:…`, as snapshots are named. */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await sha256(bytes));
  return `sha256:${[...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** A page that did not come over HTTPS or loopback has no `crypto.subtle`: there may be a proxy that speaks plain HTTP. */
async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer | Uint8Array> {
  if (window.isSecureContext) return crypto.subtle.digest("SHA-256", bytes);
  return (await import("@noble/hashes/sha2.js")).sha256(bytes);
}
