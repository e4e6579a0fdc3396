/** Workers and ranks of the last attempt: where each is and how it fares. */
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { JobView, WorkerView } from "../../api/client";
import { paths } from "../../app/paths";
import { Reason } from "../../ui/reason";
import { State, type StateWord } from "../../ui/state";
import { Table } from "../../ui/table";
import { Lasting } from "../../ui/when";
import { ranksPerWorker } from "./timeline";

type RankRow = { rank: number; worker: WorkerView; device: number | undefined };

function stateOfWorker(worker: WorkerView): StateWord {
  if (worker.phase !== "ended") return worker.phase;
  return !worker.reason || worker.reason.code === "succeeded"
    ? "succeeded"
    : worker.reason.code === "stopped"
      ? "stopped"
      : "failed";
}

export function Ranks({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const attempt = job.attempts.at(-1);
  const each = ranksPerWorker(job);
  const stragglers = new Set(job.progress?.stragglers ?? []);
  const rows: RankRow[] = (attempt?.workers ?? []).flatMap((worker) =>
    Array.from({ length: each }, (_, local) => ({
      rank: worker.index * each + local,
      worker,
      device: each === worker.devices.length ? worker.devices[local] : undefined,
    })),
  );
  return (
    <Table
      label={t("job.tab.ranks")}
      rows={rows}
      rowKey={(row) => row.rank}
      empty={<p>{t("logs.notStarted")}</p>}
      columns={[
        { key: "rank", title: t("logs.rank"), width: 70, end: true, render: (row) => row.rank },
        {
          key: "state",
          title: t("job.stateAndReason"),
          render: (row) => (
            <span className="cell-two">
              <State state={stateOfWorker(row.worker)} />
              <span>
                {stragglers.has(row.rank) ? (
                  t("job.straggles")
                ) : row.worker.reason ? (
                  <Reason reason={row.worker.reason} />
                ) : (
                  ""
                )}
              </span>
            </span>
          ),
        },
        { key: "worker", title: t("job.worker"), width: 80, end: true, render: (row) => row.worker.index },
        {
          key: "node",
          title: t("job.node"),
          width: "20%",
          render: (row) => <Link to={paths.node(row.worker.node)}>{row.worker.node}</Link>,
        },
        {
          key: "devices",
          title: t("job.devices"),
          width: 130,
          render: (row) =>
            row.device ?? (row.worker.devices.length > 0 ? row.worker.devices.join(", ") : "–"),
        },
        {
          key: "ran",
          title: t("job.ran"),
          width: 110,
          end: true,
          render: (row) =>
            row.worker.running_at ? <Lasting from={row.worker.running_at} to={row.worker.ended_at} /> : "–",
        },
        {
          key: "logs",
          title: t("job.tab.logs"),
          width: 80,
          render: (row) => (
            <Link to={`${paths.job(job.id, "logs")}?rank=${row.rank}`}>{t("job.tab.logs")}</Link>
          ),
        },
      ]}
    />
  );
}
