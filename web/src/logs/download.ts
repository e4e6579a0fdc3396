/** Saves a log as text, page by page. */
import { answer, api, type JobView } from "../api/client";
import { plain } from "./ansi";

const PER_PAGE = 10_000;

export async function download(job: JobView, attempt: number, rank: number | undefined) {
  const parts: string[] = [];
  let cursor: string | undefined;
  do {
    const query = { attempt, rank, cursor, limit: PER_PAGE };
    const page = await answer(api.GET("/jobs/{id}/logs", { params: { path: { id: job.id }, query } }));
    parts.push(page.items.map((line) => `${line.at} ${line.rank} ${plain(line.text)}\n`).join(""));
    cursor = page.next ?? undefined;
  } while (cursor);
  const address = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `${job.name}-${job.id}-${attempt}${rank === undefined ? "" : `-rank-${rank}`}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
