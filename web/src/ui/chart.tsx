/** Lines over time or over steps. Charts with the same `sync` move their cursors together. */
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "./theme";

export type Line = { label: string; values: (number | null)[]; isFaint?: boolean };

type Props = {
  title: string;
  /** Seconds since 1970 where it is a time; else any number. */
  x: number[];
  isTime: boolean;
  lines: Line[];
  sync: string;
  format: (value: number) => string;
};

const HEIGHT = 180;
const PALETTE = ["running", "succeeded", "queued", "stopping", "failed", "starting"];

export function Chart({ title, x, isTime, lines, sync, format }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const { isDark } = useTheme();
  const { t } = useTranslation();
  const shape = `${isDark} ${isTime} ${lines.map((line) => line.label + line.isFaint).join("|")}`;
  const data = useRef<uPlot.AlignedData>([[]]);
  data.current = [x, ...lines.map((line) => line.values)] as uPlot.AlignedData;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a chart is made anew when its shape changes; data flows into it below
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = {
      stroke: colour("muted"),
      grid: { stroke: colour("border"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui",
    };
    const options: uPlot.Options = {
      width: Math.max(200, element.clientWidth),
      height: HEIGHT,
      cursor: { sync: { key: sync }, drag: { x: false, y: false } },
      scales: { x: { time: isTime } },
      legend: { show: lines.length > 0, live: true },
      axes: [axis, { ...axis, size: 58, values: (_, ticks) => ticks.map(format) }],
      series: [
        {
          label: isTime ? t("metrics.time") : t("metrics.step"),
          value: isTime ? "{HH}:{mm}:{ss}" : (_, value) => (value === null ? "–" : String(value)),
        },
        ...lines.map((line, index) => ({
          label: line.label,
          stroke: colour(PALETTE[index % PALETTE.length] ?? "text"),
          width: line.isFaint ? 1 : 1.6,
          dash: line.isFaint ? [4, 4] : undefined,
          spanGaps: true,
          points: { show: false },
          value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
        })),
      ],
    };
    const made = new uPlot(options, data.current, element);
    plot.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, sync]);

  useEffect(() => {
    plot.current?.setData([x, ...lines.map((line) => line.values)] as uPlot.AlignedData);
  }, [x, lines]);

  const last = lines
    .map((line) => line.values.findLast((value) => value !== null))
    .filter((value) => value !== undefined);
  return (
    <section className="panel chart" aria-label={title}>
      <div className="row spread">
        <h3>{title}</h3>
        <span className="number">{last.length > 0 && last[0] !== null ? format(last[0] as number) : ""}</span>
      </div>
      <div ref={box} />
    </section>
  );
}
