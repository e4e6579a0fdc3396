/** What the job is, and why it is as it is. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { AttemptView, JobView } from "../../api/client";
import { why } from "../../api/queries";
import { figure, resources } from "../../format/amounts";
import { duration, spanSeconds } from "../../format/time";
import { Answer } from "../../ui/answer";
import { Progress } from "../../ui/bar";
import { Reason } from "../../ui/reason";
import { Table } from "../../ui/table";
import { Lasting, When } from "../../ui/when";
import { Why } from "./why";

export function JobOverview({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const isWaiting = job.state === "queued" || job.state === "held";
  return (
    <>
      {isWaiting ? <Waiting job={job} /> : null}
      <div className="columns">
        <section className="panel">
          <h2>{t("job.about")}</h2>
          <Facts job={job} />
        </section>
        {job.progress ? (
          <section className="panel">
            <h2>{t("job.progress")}</h2>
            <Progressing job={job} />
          </section>
        ) : null}
      </div>
      {job.attempts.length > 0 ? <Attempts attempts={job.attempts} /> : null}
    </>
  );
}

function Waiting({ job }: { job: JobView }) {
  const explanation = useQuery({ ...why(job.id), refetchInterval: 5000 });
  return <Answer of={explanation}>{(data) => <Why explanation={data} job={job} />}</Answer>;
}

function Facts({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const { spec } = job;
  const facts: [string, React.ReactNode][] = [
    [t("job.command"), <code key="command">{spec.command}</code>],
    [t("job.resources"), resources(spec)],
    [t("spec.cpus"), spec.cpus],
    [t("spec.memory"), spec.memory ?? t("job.unlimited")],
    [t("spec.framework"), spec.framework],
    [t("spec.image"), spec.image],
    [t("spec.priority"), spec.priority],
    [t("spec.preemptible"), spec.preemptible ? t("common.yes") : t("common.no")],
    [t("spec.maxTime"), spec.max_time ?? t("job.unlimited")],
    [t("job.submitted"), <When key="submitted" at={job.submitted_at} />],
    [t("job.exitCode"), job.exit_code ?? "–"],
  ];
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Progressing({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const { progress } = job;
  if (!progress) return null;
  const left = progress.left ? spanSeconds(progress.left) : undefined;
  const metrics = Object.entries(progress.metrics ?? {});
  return (
    <dl className="facts">
      {progress.done === undefined || progress.done === null ? null : (
        <>
          <dt>{t("job.done")}</dt>
          <dd>
            <Progress done={progress.done} />
          </dd>
        </>
      )}
      {left === undefined ? null : (
        <>
          <dt>{t("job.left")}</dt>
          <dd className="number">{duration(left * 1000)}</dd>
        </>
      )}
      {metrics.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd className="number">{figure(Number(value))}</dd>
        </div>
      ))}
      {progress.checkpoint_at ? (
        <>
          <dt>{t("job.checkpoint")}</dt>
          <dd>
            <When at={progress.checkpoint_at} />
          </dd>
        </>
      ) : null}
      {progress.stragglers?.length ? (
        <>
          <dt>{t("job.stragglers")}</dt>
          <dd>{progress.stragglers.join(", ")}</dd>
        </>
      ) : null}
    </dl>
  );
}

function Attempts({ attempts }: { attempts: AttemptView[] }) {
  const { t } = useTranslation();
  return (
    <section className="stack" style={{ gap: 6 }}>
      <h2>{t("job.attempts")}</h2>
      <Table
        label={t("job.attempts")}
        narrow
        rows={[...attempts].reverse()}
        rowKey={(attempt) => attempt.number}
        empty=""
        columns={[
          { key: "number", title: "#", width: 44, end: true, render: (attempt) => attempt.number },
          {
            key: "reason",
            title: t("job.reason"),
            render: (attempt) => <Reason reason={attempt.reason} />,
          },
          {
            key: "nodes",
            title: t("nav.nodes"),
            width: "24%",
            render: (attempt) => [...new Set(attempt.workers.map((worker) => worker.node))].join(", "),
          },
          {
            key: "lasted",
            title: t("job.lasted"),
            width: 110,
            end: true,
            render: (attempt) => <Lasting from={attempt.placed_at} to={attempt.ended_at} />,
          },
          {
            key: "placed",
            title: t("job.placed"),
            width: 130,
            end: true,
            render: (attempt) => <When at={attempt.placed_at} />,
          },
        ]}
      />
    </section>
  );
}
