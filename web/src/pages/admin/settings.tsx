/** What holds for everybody: lending, how long jobs are safe, the rules of people's own workspaces. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSharingSet } from "../../api/changes";
import type { SharingRules } from "../../api/client";
import { sharing } from "../../api/queries";
import { Answer, Failure } from "../../ui/answer";
import { Button, Switch, TextField } from "../../ui/controls";
import { QuotaFields } from "../quotas/edit";
import { rulesOf, textsOf } from "../quotas/rules";

export function Settings() {
  return <Answer of={useQuery(sharing)}>{(rules) => <Form rules={rules} />}</Answer>;
}

function Form({ rules }: { rules: SharingRules }) {
  const { t } = useTranslation();
  const save = useSharingSet();
  const [lending, setLending] = useState(rules.lending);
  const [runTime, setRunTime] = useState(String(rules.minimum_run_time));
  const [texts, setTexts] = useState(() => textsOf(rules.personal));
  return (
    <form
      className="panel stack"
      aria-label={t("nav.settings")}
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate({ lending, minimum_run_time: runTime, personal: rulesOf(rules.personal, texts) });
      }}
    >
      <Switch label={t("settings.lending")} checked={lending} onChange={setLending} />
      <TextField label={t("settings.runTime")} value={runTime} onChange={setRunTime} />
      <h2>{t("settings.personal")}</h2>
      <QuotaFields texts={texts} onChange={setTexts} error={save.error} />
      {save.error ? <Failure error={save.error} /> : null}
      {save.isSuccess ? <p role="status">{t("settings.saved")}</p> : null}
      <div>
        <Button submit kind="primary" busy={save.isPending}>
          {t("common.save")}
        </Button>
      </div>
    </form>
  );
}
