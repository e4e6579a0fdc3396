/** Times: relative where people read, exact on hover. One clock moves them all. */
import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
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

const useNow = () => useSyncExternalStore(subscribe, () => now);

export function When({ at }: { at: string }) {
  const { i18n } = useTranslation();
  const now = useNow();
  return (
    <time dateTime={at} title={exact(at, i18n.language)} className="number">
      {relative(at, now, i18n.language)}
    </time>
  );
}

/** How long from one time to another, or until now. */
export function Lasting({ from, to }: { from: string; to?: string | null }) {
  const { i18n } = useTranslation();
  const now = useNow();
  const end = to ? Date.parse(to) : now;
  return (
    <span className="number" title={exact(from, i18n.language)}>
      {duration(end - Date.parse(from))}
    </span>
  );
}
