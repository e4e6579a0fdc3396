/** Which rows of a long list are in sight. All have one height, so a place in the list is a number. */
import { type RefObject, useEffect, useState } from "react";

/** Rows are drawn in groups of this many: scrolling within a group draws nothing. */
const GROUP = 4;
/** Rows beyond each edge, so that nobody sees the end of them while scrolling. */
const BEYOND = 8;

type View = { top: number; height: number };

/** The first row to draw, and the one behind the last. */
export function rowsInSight(view: View, rowHeight: number, count: number): { first: number; end: number } {
  const top = Math.floor(view.top / rowHeight / GROUP) * GROUP;
  const first = Math.max(0, Math.min(top, count) - BEYOND);
  const end = Math.min(count, top + Math.ceil(view.height / rowHeight) + GROUP + BEYOND);
  return { first, end };
}

/** The same for a box that scrolls; drawn again only when other rows come into sight. */
export function useSight(box: RefObject<HTMLElement | null>, rowHeight: number, count: number) {
  const [sight, setSight] = useState(() =>
    rowsInSight({ top: 0, height: window.innerHeight }, rowHeight, count),
  );
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => {
      const view = { top: element.scrollTop, height: element.clientHeight };
      const next = rowsInSight(view, rowHeight, count);
      setSight((old) => (old.first === next.first && old.end === next.end ? old : next));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, [box, rowHeight, count]);
  // A list may have become shorter since the last look.
  return { first: Math.min(sight.first, count), end: Math.min(sight.end, count) };
}
