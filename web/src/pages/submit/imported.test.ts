import { expect, test } from "vitest";
import type { JobSpec, ParsedJobFile } from "../../api/client";
import { imported, lineOf } from "./imported";

const parsed = (parts: Partial<ParsedJobFile>): ParsedJobFile => ({ diagnostics: [], notes: [], ...parts });
const spec = (parts: Partial<JobSpec>) => ({ command: "true", workspace: "default", ...parts }) as JobSpec;

test("a job file stays as it was written, with its comments", () => {
  const text = "# mine\ncommand: 'true'\n";
  expect(imported(text, parsed({ spec: spec({}) }), "vision")).toEqual({ text });
});

test("a batch script becomes a job in the chosen workspace", () => {
  const text = "#!/bin/sh\n#SBATCH -D /data\ntrue\n";
  const read = parsed({ spec: spec({ compat: ["slurm"], command: text, workers: 1 }) });
  expect(imported(text, read, "vision")).toEqual({
    draft: { compat: ["slurm"], command: text, workspace: "vision" },
  });
});

test("a job file that brings a folder along becomes what is left of it", () => {
  const note = { line: 2, text: "the folder `.` is not uploaded from here" };
  const taken = imported(
    "command: x\ncode: .\n",
    parsed({ spec: spec({ command: "x" }), notes: [note] }),
    "vision",
  );
  expect(taken).toEqual({ draft: { command: "x", workspace: "default" } });
});

test("a refused job file can be mended, and a refused script leaves the form alone", () => {
  const diagnostics = [{ field: "memory", message: "is wrong" }];
  const text = "command: x\nmemory: 1Q\n";
  expect(imported(text, parsed({ diagnostics }), undefined)).toEqual({ text });
  expect(imported("#!/bin/sh\n#SBATCH -t 24h\ntrue\n", parsed({ diagnostics }), undefined)).toBeUndefined();
});

test("lines are shown as far as they fit", () => {
  expect(lineOf("a\r\nb\nc", 2)).toBe("b");
  expect(lineOf("a", 7)).toBe("");
  expect(lineOf("x".repeat(500), 1)).toHaveLength(161);
});
