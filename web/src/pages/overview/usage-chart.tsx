import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { usage } from "../../api/queries";
import { figure } from "../../format/amounts";
import { Chart } from "../../ui/chart";
import { usageLines } from "./history";

const percent = (value: number) => `${figure(value)} %`;

export function UsageChart() {
  const { t } = useTranslation();
  const points = useQuery({ ...usage, refetchInterval: 60_000 }).data?.items;
  const { x, lines } = useMemo(() => usageLines(points ?? [], t("overview.busy")), [points, t]);
  // One look is no line yet; the place is kept, so that nothing moves when the second comes.
  if (x.length < 2) {
    return (
      <section className="panel chart" aria-label={t("overview.history")}>
        <h3>{t("overview.history")}</h3>
        <p className="muted">{t("overview.soon")}</p>
      </section>
    );
  }
  return (
    <Chart
      title={t("overview.history")}
      x={x}
      lines={lines}
      isTime
      sync="cluster"
      format={percent}
      from={0}
      to={100}
    />
  );
}
