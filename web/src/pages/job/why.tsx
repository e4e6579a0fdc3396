/** The explanation of a waiting job, drawn: what there is, who has it, when it starts, what would start now. */
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useJobChange } from "../../api/changes";
import type { Explanation, JobView } from "../../api/client";
import { paths } from "../../app/paths";
import { deviceName } from "../../format/amounts";
import { Failure } from "../../ui/answer";
import { Bar } from "../../ui/bar";
import { Button } from "../../ui/controls";
import { basisSentence, offerSentence, reasonPhrase, reasonSentence } from "../../ui/reason";
import { Until } from "../../ui/when";
import { withOffer } from "../submit/draft";

export function Why({ explanation, job }: { explanation: Explanation; job?: JobView }) {
  const { t } = useTranslation();
  const [phrase, sentence] = [reasonPhrase(explanation.reason), reasonSentence(explanation.reason)];
  const { supply = [], quota, estimate } = explanation;
  // A job that waits out its back-off waits for nobody, and no change of it would start it sooner.
  const isBackOff = explanation.reason.code === "retry_backoff";
  const { holders = [], foreign = [], offers = [] } = isBackOff ? {} : explanation;
  return (
    <section className="panel stack" aria-label={t("why.title")}>
      <div>
        <h2 className="phrase">{phrase}</h2>
        {sentence === phrase ? null : <div className="phrase">{sentence}</div>}
        {(explanation.further ?? []).map((reason) => (
          <div key={reason.code} className="phrase">
            {reasonSentence(reason)}
          </div>
        ))}
      </div>
      <div className="row" style={{ gap: "0 24px" }}>
        {explanation.position ? (
          <span>
            {t("why.position")} <b className="number">{explanation.position}</b>
          </span>
        ) : null}
        {estimate ? <Estimate estimate={estimate} /> : null}
      </div>
      {supply.map((each) => {
        const name = deviceName(each.kind, each.model) || "CPU";
        const used = each.usable - each.free;
        const label = t("why.supply", { free: each.free, total: each.total, most: each.most_on_one_node });
        return (
          <div key={name}>
            <div className="row spread">
              <span>{name}</span>
              <span className="muted number">{label}</span>
            </div>
            <Bar
              label={`${name}: ${label}`}
              total={each.total}
              parts={[
                { amount: used, tone: "var(--running)", label: t("device.held") },
                { amount: each.reserved, tone: "var(--queued)", label: t("why.reserved") },
                { amount: each.total - each.usable, tone: "var(--failed)", label: t("device.failed") },
              ]}
            />
          </div>
        );
      })}
      {quota ? (
        <div>
          {t("why.quota", {
            workspace: quota.user ? `${quota.workspace} / ${quota.user}` : quota.workspace,
            resource: quota.resource,
            used: quota.used,
            limit: quota.limit ?? "–",
            guaranteed: quota.guaranteed,
          })}
        </div>
      ) : null}
      {holders.length + foreign.length > 0 ? (
        <div>
          <h3>{t("why.holders")}</h3>
          {holders.map((holder, place) => (
            <div key={holder.job ?? `hidden-${place}`} className="row">
              {holder.job ? (
                <Link to={paths.job(holder.job)}>{holder.name}</Link>
              ) : (
                <span>{t("device.hidden")}</span>
              )}
              <span className="muted">
                {holder.owner ? `${holder.owner} · ` : ""}
                {t("why.devices", { count: holder.devices })} · {holder.nodes.join(", ")}
              </span>
              {holder.expected_end ? <Ends at={holder.expected_end} /> : null}
            </div>
          ))}
          {foreign.map((holder) => (
            <div key={`foreign-${holder.kind}-${holder.job}`} className="row">
              <span>
                {t("device.foreign", {
                  job: holder.job,
                  name: holder.name,
                  user: holder.user,
                  context: holder.kind,
                })}
              </span>
              <span className="muted">
                {t("why.devices", { count: holder.devices })} · {holder.nodes.join(", ")}
              </span>
              {holder.until ? <Ends at={holder.until} /> : null}
            </div>
          ))}
        </div>
      ) : null}
      {job && offers.length > 0 ? (
        <div className="stack" style={{ gap: 6 }}>
          <h3>{t("why.offers")}</h3>
          {offers.map((offer) => (
            <TakeOffer key={offer.text} job={job} text={offerSentence(offer)} set={offer.set} />
          ))}
        </div>
      ) : null}
    </section>
  );
}

/** How long somebody else needs what this job waits for. */
function Ends({ at }: { at: string }) {
  const { t } = useTranslation();
  return (
    <span>
      {t("device.until")} <Until at={at} />
    </span>
  );
}

/** When it should start, and what that goes by: a guess is to be seen as one. */
function Estimate({ estimate }: { estimate: NonNullable<Explanation["estimate"]> }) {
  const { t } = useTranslation();
  const { earliest, latest, basis } = estimate;
  return (
    <span>
      {t(latest ? "why.starts" : "why.startsEarliest")} <Until at={earliest} />
      {latest ? (
        <>
          {" – "}
          <Until at={latest} />
        </>
      ) : null}
      {basis ? <span className="muted"> {t("why.basis", { basis: basisSentence(basis) })}</span> : null}
    </span>
  );
}

/** Changes the job in place, which keeps its turn should it not start after all. */
function TakeOffer({ job, text, set }: { job: JobView; text: string; set: Record<string, string> }) {
  const { t } = useTranslation();
  const change = useJobChange();
  return (
    <>
      <div className="row">
        <Button
          small
          busy={change.isPending}
          onClick={() => change.mutate({ id: job.id, patch: withOffer({}, set) })}
        >
          {t("why.take")}
        </Button>
        <span>{text}</span>
      </div>
      {change.error ? <Failure error={change.error} /> : null}
    </>
  );
}
