/** What is shown of a question: that it is asked, what was answered, that it failed, that the answer is old. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Refusal } from "../api/client";
import { ProofDeclined } from "../api/proof";
import { Button } from "./controls";

export type Asked<T> = {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  isError: boolean;
  refetch: () => unknown;
};

export function Answer<T>({ of, children }: { of: Asked<T>; children: (data: T) => ReactNode }) {
  const { t } = useTranslation();
  if (of.data !== undefined) {
    return (
      <>
        {of.isError ? (
          <div className="banner" role="status">
            <p>{t("common.stale")}</p>
            <Button small onClick={of.refetch}>
              {t("common.again")}
            </Button>
          </div>
        ) : null}
        {children(of.data)}
      </>
    );
  }
  if (of.isPending) return <Loading />;
  return <Failure error={of.error} again={of.refetch} />;
}

export function Loading() {
  const { t } = useTranslation();
  return (
    <div className="note" role="status">
      {t("common.loading")}
    </div>
  );
}

/** By the server's code in the reader's language, then the server's own words, which name what it is about. */
export function Failure({ error, again }: { error: unknown; again?: () => unknown }) {
  const { t, i18n } = useTranslation();
  if (error instanceof ProofDeclined) return null;
  const message = error instanceof Error ? error.message : String(error);
  const refusal = error instanceof Refusal ? error : undefined;
  const title =
    refusal && i18n.language !== "en"
      ? t(`problem.${refusal.code}` as "problem.internal", { defaultValue: "" })
      : "";
  return (
    <div className="banner bad" role="alert">
      <div>
        {title ? <p>{title}</p> : null}
        <p className={title ? "muted" : undefined}>{message}</p>
        {refusal?.hint ? <p className="muted">{refusal.hint}</p> : null}
      </div>
      {again ? (
        <Button small onClick={again}>
          {t("common.again")}
        </Button>
      ) : null}
    </div>
  );
}
