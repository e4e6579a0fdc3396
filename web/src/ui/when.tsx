/** Times: relative where people read, exact on hover. One clock moves them all, and draws those whose text changes. */
import i18next from "i18next";
import { useSyncExternalStore } from "react";
import { duration, exact, relative } from "../format/time";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The clock may have stood still while nobody listened. */
function readClock(): number {
  if (!timer) now = Date.now();
  return now;
}

// The language is asked for and not listened to: whoever shows a time is drawn again when it changes, and long lists
// have hundreds of times.

export function When({ at }: { at: string }) {
  const text = useSyncExternalStore(subscribe, () => relative(at, readClock(), i18next.language));
  return (
    <time dateTime={at} title={exact(at, i18next.language)} className="number">
      {text}
    </time>
  );
}

/** How long until then, in two units; nothing left once it has passed. */
export function Until({ at }: { at: string }) {
  const text = useSyncExternalStore(subscribe, () => duration(Date.parse(at) - readClock()));
  return (
    <time dateTime={at} title={exact(at, i18next.language)} className="number">
      {text}
    </time>
  );
}

/** How long from one time to another, or until now. */
export function Lasting({ from, to }: { from: string; to?: string | null }) {
  const text = useSyncExternalStore(subscribe, () =>
    duration((to ? Date.parse(to) : readClock()) - Date.parse(from)),
  );
  return (
    <span className="number" title={exact(from, i18next.language)}>
      {text}
    </span>
  );
}

/** What has added up before, in milliseconds, and what goes on since then. */
export function InAll({ before, since }: { before: number; since?: string | null | undefined }) {
  const text = useSyncExternalStore(subscribe, () =>
    duration(before + (since ? Math.max(0, readClock() - Date.parse(since)) : 0)),
  );
  return <span className="number">{text}</span>;
}
