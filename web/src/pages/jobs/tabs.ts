/** The tabs of the Jobs page: which states each holds. */
import type { JobCounts } from "../../api/client";

export const TABS = ["all", "running", "waiting", "failed", "ended"] as const;
export type Tab = (typeof TABS)[number];

const STATES: Record<Tab, string[]> = {
  all: [],
  running: ["starting", "running", "stopping"],
  waiting: ["queued", "held"],
  failed: ["failed"],
  ended: ["succeeded", "failed", "stopped"],
};

export const statesOf = (tab: Tab): string | undefined => STATES[tab].join(",") || undefined;

export function countOf(counts: JobCounts, tab: Tab): number {
  const words = STATES[tab].length > 0 ? STATES[tab] : Object.keys(counts.by_state);
  return words.reduce((sum, word) => sum + (counts.by_state[word] ?? 0), 0);
}
