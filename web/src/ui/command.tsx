/** A text to copy: above all, the command that does the same as the page. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./controls";

/** Quoted for a shell, where that is needed. */
export function quoted(text: string): string {
  return text !== "" && /^[\w./:=,@%+*-]+$/.test(text) && !text.includes("*")
    ? text
    : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function Copy({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    // A page that did not come over HTTPS or loopback has no clipboard; selecting the text works anyway.
    await navigator.clipboard?.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <Button small kind="quiet" onClick={copy} label={label}>
      {copied ? t("common.copied") : t("common.copy")}
    </Button>
  );
}

/** At the foot of each page. */
export function Command({ text }: { text: string }) {
  const { t } = useTranslation();
  return (
    <div className="command-line">
      <div className="command">
        <span>{t("common.sameByCommand")}</span>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long command scrolls, and must be reachable by keyboard */}
        <code tabIndex={0}>{text}</code>
        <Copy text={text} label={t("common.copyCommand")} />
      </div>
    </div>
  );
}
