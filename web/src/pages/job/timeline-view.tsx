import { useTranslation } from "react-i18next";
import type { JobView } from "../../api/client";
import { stateOf, tone } from "../../ui/state";
import { Lasting, When } from "../../ui/when";
import { steps } from "./timeline";

export function Timeline({ job }: { job: JobView }) {
  const { t } = useTranslation();
  return (
    <section className="panel" aria-label={t("job.timeline")}>
      <ol className="timeline" style={tone(stateOf(job))}>
        {steps(job).map((step) => (
          <li key={step.name} className={step.is} aria-current={step.is === "now" ? "step" : undefined}>
            <div>{t(`step.${step.name}`)}</div>
            <div className="muted">
              {step.name === "submitted" || step.name === "ended" ? (
                step.at ? (
                  <When at={step.at} />
                ) : (
                  "–"
                )
              ) : step.at ? (
                <Lasting from={step.at} to={step.to} />
              ) : (
                "–"
              )}
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
