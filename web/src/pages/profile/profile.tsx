/** One's own account: tokens, sessions, password, language, theme. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { answer, api } from "../../api/client";
import { useMe } from "../../app/session";
import { Failure } from "../../ui/answer";
import { Button, Switch, TextField } from "../../ui/controls";
import { Page } from "../../ui/page";
import { When } from "../../ui/when";
import { Authenticator } from "./authenticator";
import { Identities } from "./identities";
import { S3Keys, SshKeys } from "./keys";
import { Tokens } from "./tokens";

export function Profile() {
  const { t } = useTranslation();
  const { account } = useMe();
  return (
    <Page title={account.display_name ?? account.name} command="danlu whoami">
      <div className="columns">
        <section className="panel">
          <h2>{t("profile.account")}</h2>
          <dl className="facts">
            <dt>{t("signIn.name")}</dt>
            <dd>{account.name}</dd>
            <dt>{t("signIn.email")}</dt>
            <dd>{account.email ?? "–"}</dd>
            <dt>{t("profile.role")}</dt>
            <dd>{account.admin ? t("profile.admin") : t("profile.person")}</dd>
            <dt>{t("nav.quotas")}</dt>
            <dd>
              {account.workspaces
                .map(({ workspace, role }) =>
                  t("common.detailed", { text: workspace, detail: t(`role.${role}`) }),
                )
                .join(", ") || "–"}
            </dd>
            <dt>{t("profile.since")}</dt>
            <dd>
              <When at={account.created_at} />
            </dd>
          </dl>
        </section>
        <Password name={account.name} />
        <Authenticator account={account} />
      </div>
      <Identities account={account} />
      <Tokens name={account.name} />
      <SshKeys name={account.name} />
      <S3Keys name={account.name} />
    </Page>
  );
}

function Password({ name }: { name: string }) {
  const { t } = useTranslation();
  const [current, setCurrent] = useState("");
  const [password, setPassword] = useState("");
  const [keepTokens, setKeepTokens] = useState(false);
  const [result, setResult] = useState<unknown>();
  const save = async () => {
    try {
      await answer(
        api.POST("/password", { body: { account: name, current, password, keep_tokens: keepTokens } }),
      );
      setCurrent("");
      setPassword("");
      setResult("done");
    } catch (error) {
      setResult(error);
    }
  };
  return (
    <form
      className="panel stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <h2>{t("profile.password")}</h2>
      <TextField
        label={t("profile.current")}
        value={current}
        onChange={setCurrent}
        secret
        autoComplete="current-password"
      />
      <TextField
        label={t("signIn.newPassword")}
        value={password}
        onChange={setPassword}
        secret
        autoComplete="new-password"
        hint={t("signIn.passwordRule")}
      />
      <Switch label={t("profile.keepTokens")} checked={keepTokens} onChange={setKeepTokens} />
      {result === "done" ? (
        <p role="status">{t("profile.changed")}</p>
      ) : result ? (
        <Failure error={result} />
      ) : null}
      <div>
        <Button submit>{t("common.save")}</Button>
      </div>
    </form>
  );
}
