/** Two texts side by side: the stretches that differ, each with a few lines around it. Pure. */
import { structuredPatch } from "diff";

export type Side = { number: number; text: string };
export type DiffRow = { left?: Side; right?: Side; isSame: boolean };

const CONTEXT = 3;

export function stretches(before: string, after: string): DiffRow[][] {
  const { hunks } = structuredPatch("", "", before, after, "", "", { context: CONTEXT });
  return hunks.map((hunk) => {
    const rows: DiffRow[] = [];
    let [left, right] = [hunk.oldStart, hunk.newStart];
    let removed: Side[] = [];
    let added: Side[] = [];
    const flush = () => {
      for (let index = 0; index < Math.max(removed.length, added.length); index += 1)
        rows.push({ left: removed[index], right: added[index], isSame: false });
      removed = [];
      added = [];
    };
    for (const line of hunk.lines) {
      const text = line.slice(1);
      if (line.startsWith("-")) {
        removed.push({ number: left, text });
        left += 1;
      } else if (line.startsWith("+")) {
        added.push({ number: right, text });
        right += 1;
      } else if (line.startsWith(" ")) {
        flush();
        rows.push({ left: { number: left, text }, right: { number: right, text }, isSame: true });
        left += 1;
        right += 1;
      }
    }
    flush();
    return rows;
  });
}

/** What two lines have in common at both ends; what is between them is what changed. */
export function commonEnds(one: string, other: string): { start: number; end: number } {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < most - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  return { start, end };
}
