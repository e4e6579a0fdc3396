/** The last line that the job printed, on every tab. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { answer, api, type JobView } from "../../api/client";
import { paths } from "../../app/paths";
import { clock } from "../../format/time";
import { isReport, plain } from "../../logs/ansi";

const LOOK_AGAIN_MS = 2000;
/** Enough to find one that is for people, among what programs tell Danlu. */
const LOOKED_AT = 20;

export function LastLine({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const hasRun = job.attempts.length > 0;
  const last = useQuery({
    queryKey: ["job", job.id, "last-line"],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/jobs/{id}/logs", { params: { path: { id: job.id }, query: { tail: LOOKED_AT } }, signal }),
      ),
    enabled: hasRun,
    refetchInterval: job.state === "ended" ? false : LOOK_AGAIN_MS,
  });
  const line = last.data?.items.findLast(({ text }) => !isReport(text));
  return (
    <section className="pinned" aria-label={t("job.lastLine")}>
      {line ? (
        <>
          <Link to={paths.job(job.id, "logs")} className="number">
            {clock(line.at)}
          </Link>
          <span className="muted">{t("logs.rankShort", { rank: line.rank })}</span>
          <span>{plain(line.text)}</span>
        </>
      ) : (
        <span className="muted">{hasRun ? t("logs.nothingYet") : t("logs.notStarted")}</span>
      )}
    </section>
  );
}
