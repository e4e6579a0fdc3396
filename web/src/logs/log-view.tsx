/** Lines as they scroll. All have one height, so a place in the list is a number, and nothing jumps when lines come above. */
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { LogLine } from "../api/client";
import { clock } from "../format/time";
import { isReport, type Span, spans } from "./ansi";
import type { useLog } from "./use-log";

const LINE = 20;
const OVERSCAN = 30;
const NEAR = 60 * LINE;

type Props = {
  log: ReturnType<typeof useLog>;
  showsTimes: boolean;
  isFollowing: boolean;
  onFollowing: (following: boolean) => void;
  marked?: { rank: number; line: number } | undefined;
};

export function LogView({ log, showsTimes, isFollowing, onFollowing, marked }: Props) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const { buffer, shift } = log;
  const count = buffer.lines.length;
  const drawn = useRef({ version: -1, marked: "" });

  useLayoutEffect(() => {
    const element = box.current;
    if (!element || drawn.current.version === buffer.version) return;
    const isNew = drawn.current.version === -1 || buffer.version === 1;
    if (shift.version === buffer.version && shift.lines !== 0) element.scrollTop += shift.lines * LINE;
    drawn.current.version = buffer.version;
    const key = marked ? `${marked.rank}.${marked.line}` : "";
    if (marked && drawn.current.marked !== key) {
      const index = buffer.lines.findIndex(
        (line) => line.rank === marked.rank && line.number === marked.line,
      );
      if (index >= 0) {
        element.scrollTop = Math.max(0, index * LINE - element.clientHeight / 2);
        drawn.current.marked = key;
      }
    } else if (isFollowing && (isNew || buffer.isAtEnd)) {
      element.scrollTop = element.scrollHeight;
    }
    setView({ top: element.scrollTop, height: element.clientHeight });
  });

  // What opens above makes the box smaller: whoever is at the end stays there.
  const follows = useRef(isFollowing);
  follows.current = isFollowing;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
      setView({ top: element.scrollTop, height: element.clientHeight });
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    setView({ top: element.scrollTop, height: element.clientHeight });
    const below = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (element.scrollTop < NEAR && buffer.before) void log.earlier();
    if (below < NEAR && buffer.next) void log.later();
    onFollowing(below < 2 * LINE && buffer.isAtEnd);
  };
  const first = Math.max(0, Math.floor(view.top / LINE) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / LINE) + OVERSCAN);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="log" ref={box} onScroll={onScroll} tabIndex={0} aria-label={t("logs.title")}>
      <div style={{ height: count * LINE, position: "relative", minWidth: "max-content" }}>
        {buffer.lines.slice(first, last).map((line, index) => (
          <Line
            key={`${line.attempt}.${line.rank}.${line.number}`}
            line={line}
            top={(first + index) * LINE}
            showsTime={showsTimes}
            isMarked={marked !== undefined && line.rank === marked.rank && line.number === marked.line}
          />
        ))}
      </div>
      {count === 0 && !log.isLoading ? <div className="note">{t("logs.nothingYet")}</div> : null}
    </section>
  );
}

const Line = memo(function Line(props: {
  line: LogLine;
  top: number;
  showsTime: boolean;
  isMarked: boolean;
}) {
  const { line, top, showsTime, isMarked } = props;
  const words = ["log-line", line.stream, isReport(line.text) ? "report" : "", isMarked ? "marked" : ""]
    .filter(Boolean)
    .join(" ");
  return (
    <div className={words} style={{ transform: `translateY(${top}px)` }}>
      {showsTime ? (
        <time className="at number" dateTime={line.at}>
          {clock(line.at)}
        </time>
      ) : null}
      <span className="rank number">{line.rank}</span>
      <span className="text">{spans(line.text).map(Coloured)}</span>
    </div>
  );
});

function Coloured({ text, tone, bold }: Span, index: number) {
  if (!tone && !bold) return text;
  return (
    <span key={index} style={{ color: tone, fontWeight: bold ? 600 : undefined }}>
      {text}
    </span>
  );
}
