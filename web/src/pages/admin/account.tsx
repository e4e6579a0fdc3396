/** One account, as those see it who run the platform: its tokens, and what becomes of it. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAccountChange, useAccountDelete } from "../../api/changes";
import type { AccountView } from "../../api/client";
import { useMe } from "../../app/session";
import { Failure } from "../../ui/answer";
import { Button, Confirm, Switch } from "../../ui/controls";
import { Tokens } from "../profile/tokens";

export function Account({ account, onDone }: { account: AccountView; onDone: () => void }) {
  const { t } = useTranslation();
  const { name } = account;
  const [change, remove] = [useAccountChange(), useAccountDelete()];
  const [stopJobs, setStopJobs] = useState(false);
  const blocked = name === useMe().account.name && t("obstacle.self");
  return (
    <section className="panel stack" aria-label={t("admin.manageOf", { name })}>
      <div className="row spread">
        <h2>{name}</h2>
        <Button small onClick={onDone}>
          {t("common.close")}
        </Button>
      </div>
      {change.error ? <Failure error={change.error} /> : null}
      <div className="row">
        <Button small blocked={blocked} onClick={() => change.mutate({ name, admin: !account.admin })}>
          {account.admin ? t("admin.demote") : t("admin.promote")}
        </Button>
        <Confirm
          small
          kind="danger"
          blocked={blocked}
          title={t("admin.deleteTitle", { name })}
          text={t("admin.deleteText")}
          action={t("admin.delete")}
          onConfirm={() => remove.mutateAsync({ name, stopJobs }).then(onDone)}
        >
          {t("admin.delete")}
        </Confirm>
        <Switch label={t("admin.stopJobs")} checked={stopJobs} onChange={setStopJobs} />
      </div>
      <Tokens name={name} isOwn={false} />
    </section>
  );
}
