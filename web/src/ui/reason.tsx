/** Why something is as it is. The server writes English; other languages have a phrase for each code they know. */
import { useTranslation } from "react-i18next";

type Why = { code: string; text: string };

export function useReason() {
  const { t, i18n } = useTranslation();
  /** A short phrase by the code; the server's sentence where there is none. */
  const phrase = (reason: Why): string =>
    t(`reason.${reason.code}` as "reason.held", { defaultValue: reason.text });
  return {
    phrase,
    sentence: (reason: Why): string => (i18n.language === "en" ? reason.text : phrase(reason)),
  };
}

export function Reason({ reason }: { reason: Why }) {
  const { sentence } = useReason();
  return (
    <span className="muted" title={reason.text}>
      {sentence(reason)}
    </span>
  );
}
