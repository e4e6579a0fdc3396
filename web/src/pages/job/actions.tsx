/** What can be done to a job; what cannot says why. */
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { useApprove, useDelete, useHold, useRelease, useStop } from "../../api/changes";
import type { JobView } from "../../api/client";
import { paths } from "../../app/paths";
import { useObstacle } from "../../app/session";
import { Failure } from "../../ui/answer";
import { Button, Confirm } from "../../ui/controls";

export function Actions({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const obstacle = useObstacle();
  const notYours = obstacle.changeJob(job);
  const [stop, hold, release, remove] = [useStop(), useHold(), useRelease(), useDelete()];
  const approve = useApprove();
  const ended = job.state === "ended";
  const held = job.state === "held";
  return (
    <>
      <Confirm
        kind="danger"
        small
        blocked={notYours ?? (ended && t("obstacle.ended"))}
        title={t("job.stopTitle", { name: job.name })}
        text={t("jobs.stopText")}
        action={t("job.stop")}
        onConfirm={() => stop.mutateAsync(job.id)}
      >
        {t("job.stop")}
      </Confirm>
      {job.reason.code === "needs_approval" ? (
        <Button
          small
          kind="primary"
          blocked={obstacle.approve(job)}
          busy={approve.isPending}
          onClick={() => approve.mutate(job)}
        >
          {t("job.approve")}
        </Button>
      ) : held ? (
        <Button small blocked={notYours} busy={release.isPending} onClick={() => release.mutate(job.id)}>
          {t("job.release")}
        </Button>
      ) : (
        <Button
          small
          blocked={notYours ?? (job.state !== "queued" && t("obstacle.notQueued"))}
          busy={hold.isPending}
          onClick={() => hold.mutate(job.id)}
        >
          {t("job.hold")}
        </Button>
      )}
      <Button small onClick={() => navigate(paths.submit(job.id))}>
        {t("job.clone")}
      </Button>
      <Confirm
        small
        kind="danger"
        blocked={notYours ?? (!ended && t("obstacle.notEnded"))}
        title={t("job.deleteTitle", { name: job.name })}
        text={t("job.deleteText")}
        action={t("job.delete")}
        onConfirm={async () => {
          await remove.mutateAsync(job.id);
          await navigate(paths.jobs());
        }}
      >
        {t("job.delete")}
      </Confirm>
      {approve.error ? <Failure error={approve.error} /> : null}
    </>
  );
}
