/** Is it using what it holds? */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { JobView } from "../../api/client";
import { job as jobQuery, metrics, samples } from "../../api/queries";
import { useAddress } from "../../app/address";
import { bytes, figure } from "../../format/amounts";
import { Chart } from "../../ui/chart";
import { SearchField, SmallSelect } from "../../ui/controls";
import { deviceSeries, hostSeries, isEmpty, metricNames, metricSeries, type Series } from "./series";

const LOOK_AGAIN_MS = 3000;
const rate = (value: number) => `${bytes(value)}/s`;
const percent = (value: number) => `${figure(value)} %`;
const watts = (value: number) => `${figure(value)} W`;
const celsius = (value: number) => `${figure(value)} °C`;

export function Metrics({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const { query, set } = useAddress();
  const attempt = job.attempts.at(-1)?.number;
  const worker = Number(query.get("worker") ?? 0);
  const other = Number(query.get("compare") ?? 0) || undefined;
  const isLive = job.state !== "ended";
  const options = {
    enabled: attempt !== undefined,
    refetchInterval: isLive ? LOOK_AGAIN_MS : (false as const),
  };
  const of = { id: job.id, attempt: attempt ?? 1, worker };
  const sampled = useQuery({ ...samples(of), ...options });
  const said = useQuery({ ...metrics(of), ...options });
  const compared = useOther(other);

  const charts = useMemo(() => {
    const list = sampled.data?.items ?? [];
    const points = said.data?.items ?? [];
    const jobs = [{ label: `${job.name} ${job.id}`, points }, ...(compared ? [compared] : [])];
    const own = metricNames(points).map((name) => ({
      title: name,
      series: metricSeries(name, jobs),
      format: figure,
      isTime: false,
    }));
    const host: [string, Series, (value: number) => string][] = [
      [t("metrics.utilisation"), deviceSeries(list, "percent"), percent],
      [t("metrics.deviceMemory"), deviceSeries(list, "memory"), bytes],
      [t("metrics.power"), deviceSeries(list, "watts"), watts],
      [t("metrics.temperature"), deviceSeries(list, "celsius"), celsius],
      [t("metrics.cores"), hostSeries(list, { cores: t("metrics.cores") }), figure],
      [t("metrics.memory"), hostSeries(list, { memory: t("metrics.memory") }), bytes],
      [t("metrics.disk"), hostSeries(list, { read: t("metrics.read"), written: t("metrics.written") }), rate],
      [
        t("metrics.network"),
        hostSeries(list, { received: t("metrics.received"), sent: t("metrics.sent") }),
        rate,
      ],
    ];
    return [
      ...own,
      ...host.map(([title, series, format]) => ({ title, series, format, isTime: true })),
    ].filter((chart) => !isEmpty(chart.series));
  }, [sampled.data, said.data, compared, job.name, job.id, t]);

  if (attempt === undefined) return <div className="note">{t("logs.notStarted")}</div>;
  return (
    <>
      <div className="log-tools">
        <SmallSelect
          label={t("job.worker")}
          value={String(worker)}
          onChange={(value) => set({ worker: value })}
          options={Array.from({ length: job.spec.workers ?? 1 }, (_, index) => ({
            value: String(index),
            label: t("metrics.worker", { number: index }),
          }))}
        />
        <SearchField
          label={t("metrics.compare")}
          value={query.get("compare") ?? ""}
          onChange={(value) => set({ compare: value.replace(/\D/g, "") })}
        />
      </div>
      {charts.length === 0 ? <div className="note">{t("metrics.none")}</div> : null}
      <div className="charts">
        {charts.map((chart) => (
          <Chart
            key={chart.title}
            title={chart.title}
            x={chart.series.x}
            lines={chart.series.lines}
            isTime={chart.isTime}
            sync={chart.isTime ? "time" : "step"}
            format={chart.format}
          />
        ))}
      </div>
    </>
  );
}

/** What another job reported, for comparison. */
function useOther(id: number | undefined) {
  const other = useQuery({ ...jobQuery(id ?? 0), enabled: id !== undefined, retry: false });
  const attempt = other.data?.attempts.at(-1)?.number;
  const points = useQuery({
    ...metrics({ id: id ?? 0, attempt: attempt ?? 1, worker: 0 }),
    enabled: id !== undefined && attempt !== undefined,
  });
  return useMemo(
    () =>
      other.data && points.data
        ? { label: `${other.data.name} ${other.data.id}`, points: points.data.items }
        : undefined,
    [other.data, points.data],
  );
}
