import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { figure } from "../../format/amounts";
import { duration } from "../../format/time";
import { Chart } from "../../ui/chart";
import { Table } from "../../ui/table";
import { type Comparison, completion, FIGURES, overTime, shownFigure } from "./compare";

const percent = (value: number) => `${figure(value)} %`;
const span = (seconds: number) => duration(seconds * 1000);

export function Outcome({ comparison }: { comparison: Comparison }) {
  const { t } = useTranslation();
  const { runs, notes } = comparison;
  const curves = useMemo(
    () => ({
      utilisation: overTime(runs, (run) => run.series.utilisation_percent),
      queued: overTime(runs, (run) => run.series.queued),
      completion: completion(runs),
    }),
    [runs],
  );
  return (
    <section className="stack" aria-label={t("simulate.outcome")}>
      <Table
        label={t("simulate.outcome")}
        rows={[...FIGURES]}
        rowKey={(name) => name}
        empty=""
        columns={[
          { key: "figure", title: t("simulate.figure"), width: "34%", render: (name) => t(`figure.${name}`) },
          ...runs.map((run, index) => ({
            key: String(index),
            title: run.name,
            end: true,
            render: (name: (typeof FIGURES)[number]) => shownFigure(name, run),
          })),
        ]}
      />
      <div className="charts">
        <Chart
          title={t("simulate.utilisation")}
          {...curves.utilisation}
          isTime={false}
          sync="simulation"
          format={percent}
        />
        <Chart
          title={t("simulate.queued")}
          {...curves.queued}
          isTime={false}
          sync="simulation"
          format={figure}
        />
        <Chart
          title={t("simulate.completion")}
          {...curves.completion}
          isTime={false}
          sync="quantile"
          format={span}
        />
      </div>
      {notes.length > 0 ? (
        <ul className="muted">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}
