/** What is shown where there is no page, or where a page broke. */
import { useTranslation } from "react-i18next";
import { Link, useRouteError } from "react-router";
import { Page } from "../ui/page";
import { paths } from "./paths";

export function Lost() {
  const { t } = useTranslation();
  const error = useRouteError();
  return (
    <Page title={t("lost.title")}>
      <p>{error instanceof Error ? error.message : t("lost.text")}</p>
      <p>
        <Link to={paths.jobs()}>{t("nav.jobs")}</Link>
      </p>
    </Page>
  );
}
