/** How a job is shown in a list. */
import { t } from "i18next";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { JobView } from "../../api/client";
import { paths } from "../../app/paths";
import { resources } from "../../format/amounts";
import { duration, spanSeconds } from "../../format/time";
import { Progress } from "../../ui/bar";
import { Reason } from "../../ui/reason";
import { State, stateOf } from "../../ui/state";
import type { Column } from "../../ui/table";
import { InAll, Lasting, When } from "../../ui/when";
import { waitedBefore } from "../job/timeline";

/** What has ended cannot be chosen for stopping. */
function Chooser({
  job,
  isChosen,
  toggle,
}: {
  job: JobView;
  isChosen: boolean;
  toggle: (id: number) => void;
}) {
  if (job.state === "ended") return null;
  return (
    <input
      type="checkbox"
      checked={isChosen}
      onChange={() => toggle(job.id)}
      aria-label={t("jobs.choose", { id: job.id, name: job.name })}
    />
  );
}

/** How far it is, or how long it took. */
function Going({ job }: { job: JobView }) {
  const done = job.progress?.done;
  if (job.state !== "ended" && done !== undefined && done !== null) {
    const left = job.progress?.left ? spanSeconds(job.progress.left) : undefined;
    return (
      <Progress
        done={done}
        left={left === undefined ? undefined : t("job.leftIn", { time: duration(left * 1000) })}
      />
    );
  }
  const isWaiting = job.state === "queued" || job.state === "held";
  if (job.started_at && !isWaiting) return <Lasting from={job.started_at} to={job.ended_at} />;
  return <span className="muted">–</span>;
}

/** Whether the reason says more than the state does. */
const saysMore = (job: JobView): boolean => job.reason.code !== (job.outcome ?? job.state);

export function useColumns(chosen: ReadonlySet<number>, toggle: (id: number) => void): Column<JobView>[] {
  const { t } = useTranslation();
  return useMemo(
    () => [
      {
        key: "choose",
        title: <span className="visually-hidden">{t("jobs.chooseTitle")}</span>,
        width: 34,
        fits: true,
        render: (job) => <Chooser job={job} isChosen={chosen.has(job.id)} toggle={toggle} />,
      },
      { key: "id", title: t("job.id"), width: 58, end: true, render: (job) => job.id },
      {
        key: "name",
        title: t("job.name"),
        share: "name",
        render: (job) => (
          <Link to={paths.job(job.id)} title={job.name}>
            {job.name}
          </Link>
        ),
      },
      {
        key: "state",
        title: t("job.stateAndReason"),
        render: (job) => (
          <span className="cell-two">
            <State state={stateOf(job)} />
            {saysMore(job) ? <Reason reason={job.reason} /> : null}
          </span>
        ),
      },
      {
        key: "resources",
        title: t("job.resources"),
        width: 164,
        from: "wide",
        render: (job) => resources(job.spec),
      },
      {
        key: "owner",
        title: t("job.owner"),
        width: 76,
        from: "middle",
        render: (job) => <span title={`${job.owner} / ${job.workspace}`}>{job.owner}</span>,
      },
      {
        key: "waited",
        title: t("job.waited"),
        width: 78,
        end: true,
        from: "wide",
        render: (job) => <InAll before={waitedBefore(job)} since={job.queued_since} />,
      },
      {
        key: "going",
        title: t("job.going"),
        width: 136,
        fits: true,
        from: "middle",
        render: (job) => <Going job={job} />,
      },
      {
        key: "submitted",
        title: t("job.submitted"),
        width: 120,
        end: true,
        from: "widest",
        render: (job) => <When at={job.submitted_at} />,
      },
    ],
    [t, chosen, toggle],
  );
}
