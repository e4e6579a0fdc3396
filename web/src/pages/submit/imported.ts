/** From a file that the server has read to the draft. Pure. */
import type { ParsedJobFile } from "../../api/client";
import { type Draft, likeJob, read } from "./draft";

const LONGEST_EXCERPT = 160;

/** A line of the file, counted from 1, as far as it can be shown. */
export function lineOf(text: string, line: number): string {
  const found = text.split(/\r?\n/)[line - 1] ?? "";
  return found.length > LONGEST_EXCERPT ? `${found.slice(0, LONGEST_EXCERPT)}…` : found;
}

/**
 * What the form and the text become. A job file stays as it was written, with its comments, where the job is all that it says, or to be
 * mended; a batch script becomes the job file that does the same, in the workspace that was chosen.
 */
export function imported(
  text: string,
  parsed: ParsedJobFile,
  workspace: string | undefined,
): { text: string } | { draft: Draft } | undefined {
  const { spec, notes } = parsed;
  const isScript = spec?.compat?.includes("slurm") ?? false;
  if (!spec) return "draft" in read(text) ? { text } : undefined;
  if (!isScript && notes.length === 0) return { text };
  const draft = likeJob(spec);
  return { draft: isScript && workspace ? { ...draft, workspace } : draft };
}
