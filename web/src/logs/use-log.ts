/** One log as it is held, loaded where it is looked at and followed while it grows. */
import { useEffect, useRef, useState } from "react";
import { answer, api, type LogMessage } from "../api/client";
import { isReport } from "./ansi";
import { LogBuffer } from "./buffer";

const PAGE = 1000;
/** Lines before the one that a link names, so that one sees what led to it. */
const CONTEXT = 200;
const TRY_AGAIN_MS = 1000;
/** A screenful; where reports are left out, more pages may be needed for one. */
const ENOUGH = 100;
const MOST_PAGES = 20;

export type LogAddress = {
  id: number;
  attempt: number;
  rank?: number | undefined;
  line?: number | undefined;
};

/** How many lines came or went above what is in sight, since the last time it was drawn. */
export type Shift = { version: number; lines: number };

export function useLog(address: LogAddress, showsReports: boolean) {
  const { id, attempt, rank, line } = address;
  const buffer = useRef(new LogBuffer());
  const [, setVersion] = useState(0);
  const shift = useRef<Shift>({ version: 0, lines: 0 });
  const busy = useRef(false);
  const [error, setError] = useState<unknown>();
  const [isLoading, setLoading] = useState(true);
  const [isEnded, setEnded] = useState(false);
  const [openings, setOpenings] = useState(0);

  const ask = (query: { tail?: number; before?: string; cursor?: string; line?: number; limit?: number }) =>
    answer(api.GET("/jobs/{id}/logs", { params: { path: { id }, query: { attempt, rank, ...query } } }));
  const changed = (lines: number) => {
    shift.current = { version: buffer.current.version, lines };
    setVersion(buffer.current.version);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: the log is opened anew when its address changes, and when asked
  useEffect(() => {
    let isCurrent = true;
    let source: EventSource | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    const held = new LogBuffer((line) => showsReports || !isReport(line.text));
    buffer.current = held;
    setLoading(true);
    setError(undefined);
    setEnded(false);

    const follow = () => {
      const from = buffer.current.end;
      if (!isCurrent || !from || document.hidden) return;
      const query = new URLSearchParams({ cursor: from });
      if (rank !== undefined) query.set("rank", String(rank));
      source = new EventSource(`/api/v1/jobs/${id}/logs/follow?${query}`);
      source.onmessage = (event: MessageEvent<string>) => {
        const message = JSON.parse(event.data) as LogMessage;
        if (message.type === "end") {
          setEnded(true);
          source?.close();
        }
        // Lines at the end were let go meanwhile: whoever comes back there opens it anew.
        if (message.type !== "lines" || !buffer.current.isAtEnd) return;
        changed(-buffer.current.follow(message.lines, event.lastEventId));
      };
      // The browser would come back to where it began, and show lines twice.
      source.onerror = () => {
        source?.close();
        again = setTimeout(follow, TRY_AGAIN_MS);
      };
    };
    const onVisibility = () => {
      source?.close();
      clearTimeout(again);
      follow();
    };
    const open = async () => {
      try {
        const named = openings === 0 && line !== undefined && rank !== undefined;
        const page = await ask(named ? { line: Math.max(0, line - CONTEXT), limit: PAGE } : { tail: PAGE });
        if (!isCurrent) return;
        held.open(page);
        for (let pages = 0; held.before && held.lines.length < ENOUGH && pages < MOST_PAGES; pages += 1) {
          const earlier = await ask({ tail: PAGE, before: held.before });
          if (!isCurrent) return;
          held.prepend(earlier);
        }
        changed(0);
        follow();
      } catch (failure) {
        if (isCurrent) setError(failure);
      } finally {
        if (isCurrent) setLoading(false);
      }
    };
    void open();
    document.addEventListener("visibilitychange", onVisibility);
    return () => {
      isCurrent = false;
      document.removeEventListener("visibilitychange", onVisibility);
      source?.close();
      clearTimeout(again);
    };
  }, [id, attempt, rank, line, openings, showsReports]);

  /** One question at a time: scrolling asks often. */
  const once = async (question: () => Promise<void>) => {
    if (busy.current) return;
    busy.current = true;
    try {
      await question();
    } catch (failure) {
      setError(failure);
    } finally {
      busy.current = false;
    }
  };
  const held = buffer.current;
  return {
    buffer: held,
    shift: shift.current,
    error,
    isLoading,
    isEnded,
    earlier: () =>
      once(async () => {
        if (!held.before) return;
        const page = await ask({ tail: PAGE, before: held.before });
        if (buffer.current === held) changed(held.prepend(page));
      }),
    later: () =>
      once(async () => {
        if (!held.next) return;
        const page = await ask({ cursor: held.next, limit: PAGE });
        if (buffer.current === held) changed(-held.append(page));
      }),
    fromStart: () =>
      once(async () => {
        const page = await ask({ limit: PAGE });
        if (buffer.current !== held) return;
        held.open(page);
        changed(0);
      }),
    fromEnd: () => setOpenings((count) => count + 1),
  };
}
