/** What the scheduler says of a job that is not submitted yet. */
import { useTranslation } from "react-i18next";
import type { Explanation, Refusal } from "../../api/client";
import { Button } from "../../ui/controls";
import { offerSentence } from "../../ui/reason";
import { Why } from "../job/why";

type Props = {
  explanation: Explanation | undefined;
  refusal: Refusal | undefined;
  isSettled: boolean;
  onTake: (set: Record<string, string>) => void;
};

export function Verdict({ explanation, refusal, isSettled, onTake }: Props) {
  const { t, i18n } = useTranslation();
  if (refusal) {
    return (
      <section className="banner bad" role="status" aria-label={t("submit.verdict")}>
        <div>
          {i18n.language === "en" ? null : (
            <p>{t(`problem.${refusal.code}` as "problem.internal", { defaultValue: "" })}</p>
          )}
          <p>{refusal.message}</p>
          {refusal.fields.map((field) => (
            <p key={field.field + field.message}>
              <code>{field.field}</code> {field.message}
            </p>
          ))}
          {refusal.hint ? <p className="muted">{refusal.hint}</p> : null}
        </div>
      </section>
    );
  }
  if (!explanation) {
    return (
      <section className="banner" role="status" aria-label={t("submit.verdict")}>
        <p>{t("submit.checking")}</p>
      </section>
    );
  }
  // What the next plan would start has no reason to wait.
  const startsNow = explanation.reason.code === "about_to_start";
  return (
    <section className="stack" role="status" aria-label={t("submit.verdict")} aria-busy={!isSettled}>
      {startsNow ? (
        <div className="banner good">
          <p>{t("submit.startsNow")}</p>
        </div>
      ) : (
        <>
          <div className="banner">
            <p>{t("submit.waits")}</p>
          </div>
          <Why explanation={explanation} />
          {(explanation.offers ?? []).map((offer) => (
            <div key={offer.text} className="row">
              <Button small onClick={() => onTake(offer.set)}>
                {t("why.take")}
              </Button>
              <span>{offerSentence(offer)}</span>
            </div>
          ))}
        </>
      )}
    </section>
  );
}
