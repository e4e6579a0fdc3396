/**
 * Keeps what is shown fresh: the server's hints say what changed, and those keys become stale. Where hints do not come,
 * everything is asked for again from time to time. Only a tab that is looked at listens: browsers allow six connections
 * to a server, over all tabs.
 */
import type { InvalidateQueryFilters, Query, QueryClient } from "@tanstack/react-query";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";

/** Many jobs may change at once; lists are asked for again at most this often. */
const LISTS_EVERY_MS = 1000;
const POLL_EVERY_MS = 5000;
const TRY_AGAIN_MS = 2000;

export type Hint = { kind: string; id: string; generation: number };

/** The keys that a hint makes stale: at once, and those of lists, which may wait. */
export function staleKeys(hint: Hint): { now: unknown[][]; soon: unknown[][] } {
  switch (hint.kind) {
    case "job":
      return {
        now: [["job", Number(hint.id)]],
        soon: [["jobs"], ["nodes"], ["devices"], ["workspaces"], ["dry-run"]],
      };
    case "node":
      return { now: [["nodes"], ["devices"]], soon: [["dry-run"]] };
    default:
      return { now: [], soon: [] };
  }
}

/** More pages than this are not asked for again at every change; the page then offers to do so. */
const PAGES_KEPT_FRESH = 5;

/** Whether a list is too long to be kept fresh by itself. */
export function isLong(data: unknown): boolean {
  const pages = (data as { pages?: unknown[] } | undefined)?.pages;
  return pages !== undefined && pages.length > PAGES_KEPT_FRESH;
}

class Freshness {
  private live = false;
  private listeners = new Set<() => void>();

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  isLive = () => this.live;

  set(live: boolean) {
    if (this.live === live) return;
    this.live = live;
    for (const listener of this.listeners) listener();
  }
}

const freshness = new Freshness();

/** Whether what is shown follows the server by its hints. */
export function useIsLive(): boolean {
  return useSyncExternalStore(freshness.subscribe, freshness.isLive);
}

/**
 * Asks again for what may have changed. A first answer that is under way is not broken off by that, and may be from before
 * the change: then it is asked for once more when it is there.
 */
export async function renew(client: QueryClient, filters: InvalidateQueryFilters = {}): Promise<void> {
  const isFirst = client
    .getQueryCache()
    .findAll({ ...filters, fetchStatus: "fetching" })
    .some(hasNoData);
  await client.invalidateQueries(filters);
  if (isFirst) await client.invalidateQueries(filters);
}

const hasNoData = (query: Query) => query.state.data === undefined;

function listen(client: QueryClient): () => void {
  let source: EventSource | undefined;
  let soon = new Map<string, unknown[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;

  const flush = () => {
    timer = undefined;
    const keys = [...soon.values()];
    soon = new Map();
    for (const queryKey of keys)
      void renew(client, { queryKey, predicate: (query) => !isLong(query.state.data) });
  };
  const onHint = (event: MessageEvent<string>) => {
    const { now, soon: later } = staleKeys(JSON.parse(event.data) as Hint);
    for (const queryKey of now) void renew(client, { queryKey });
    for (const key of later) soon.set(JSON.stringify(key), key);
    if (later.length > 0) timer ??= setTimeout(flush, LISTS_EVERY_MS);
  };
  const open = () => {
    close();
    source = new EventSource("/api/v1/hints");
    source.onopen = () => {
      freshness.set(true);
      // What changed while nobody listened, nobody was told.
      void renew(client);
    };
    source.onmessage = onHint;
    source.onerror = () => {
      close();
      again = setTimeout(open, TRY_AGAIN_MS);
    };
  };
  const close = () => {
    source?.close();
    source = undefined;
    clearTimeout(again);
    freshness.set(false);
  };
  const onVisibility = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", onVisibility);
  if (!document.hidden) open();
  const poll = setInterval(() => {
    if (!freshness.isLive() && !document.hidden) void client.invalidateQueries();
  }, POLL_EVERY_MS);
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    clearInterval(poll);
    clearTimeout(timer);
    close();
  };
}

export function useHints() {
  const client = useQueryClient();
  useEffect(() => listen(client), [client]);
}
