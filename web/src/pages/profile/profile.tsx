/** One's own account: tokens, sessions, password, language, theme. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useTokenMake, useTokenRevoke } from "../../api/changes";
import { answer, api } from "../../api/client";
import { tokens } from "../../api/queries";
import { useMe } from "../../app/session";
import { Answer, Failure } from "../../ui/answer";
import { Copy } from "../../ui/command";
import { Button, Confirm, Select, TextField } from "../../ui/controls";
import { Page } from "../../ui/page";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";

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
                .map((membership) => `${membership.workspace} (${t(`role.${membership.role}`)})`)
                .join(", ") || "–"}
            </dd>
            <dt>{t("profile.since")}</dt>
            <dd>
              <When at={account.created_at} />
            </dd>
          </dl>
        </section>
        <Password name={account.name} />
      </div>
      <Tokens name={account.name} />
    </Page>
  );
}

function Password({ name }: { name: string }) {
  const { t } = useTranslation();
  const [current, setCurrent] = useState("");
  const [password, setPassword] = useState("");
  const [result, setResult] = useState<unknown>();
  const save = async () => {
    try {
      await answer(api.POST("/password", { body: { account: name, current, password } }));
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

function Tokens({ name }: { name: string }) {
  const { t } = useTranslation();
  const list = useQuery(tokens(name));
  const revoke = useTokenRevoke();
  return (
    <section className="stack" style={{ gap: 8 }}>
      <h2>{t("profile.tokens")}</h2>
      <NewToken />
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("profile.tokens")}
            rows={items}
            rowKey={(token) => token.id}
            empty={<p>{t("profile.noTokens")}</p>}
            columns={[
              { key: "name", title: t("signIn.name"), render: (token) => token.name },
              {
                key: "kind",
                title: t("profile.kind"),
                width: 130,
                render: (token) => t(`token.${token.kind}` as "token.api", { defaultValue: token.kind }),
              },
              {
                key: "scope",
                title: t("profile.scope"),
                width: 110,
                render: (token) => t(`scope.${token.scope}`),
              },
              {
                key: "made",
                title: t("profile.made"),
                width: 140,
                render: (token) => <When at={token.created_at} />,
              },
              {
                key: "used",
                title: t("profile.used"),
                width: 140,
                render: (token) => (token.last_used_at ? <When at={token.last_used_at} /> : "–"),
              },
              {
                key: "expires",
                title: t("profile.expires"),
                width: 140,
                render: (token) => (token.expires_at ? <When at={token.expires_at} /> : "–"),
              },
              {
                key: "revoke",
                title: <span className="visually-hidden">{t("profile.revoke")}</span>,
                width: 100,
                render: (token) => (
                  <Confirm
                    small
                    kind="danger"
                    title={t("profile.revokeTitle", { name: token.name })}
                    text={t("profile.revokeText")}
                    action={t("profile.revoke")}
                    onConfirm={() => revoke.mutateAsync({ name, id: token.id })}
                  >
                    {t("profile.revoke")}
                  </Confirm>
                ),
              },
            ]}
          />
        )}
      </Answer>
    </section>
  );
}

function NewToken() {
  const { t } = useTranslation();
  const make = useTokenMake();
  const [name, setName] = useState("");
  const [scope, setScope] = useState<"read" | "jobs" | "all">("jobs");
  return (
    <form
      className="panel stack"
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate({ name, scope });
      }}
    >
      <div className="form">
        <TextField label={t("profile.tokenName")} value={name} onChange={setName} />
        <Select
          label={t("profile.scope")}
          value={scope}
          onChange={(value) => setScope(value as typeof scope)}
          options={(["read", "jobs", "all"] as const).map((value) => ({ value, label: t(`scope.${value}`) }))}
        />
      </div>
      {make.error ? <Failure error={make.error} /> : null}
      {make.data ? (
        <div className="banner good" role="status">
          <div>
            <p>{t("profile.secretOnce")}</p>
            <code>{make.data.secret}</code>
          </div>
          <Copy text={make.data.secret} label={t("profile.copySecret")} />
        </div>
      ) : null}
      <div>
        <Button submit blocked={!name && t("profile.needsName")}>
          {t("profile.makeToken")}
        </Button>
      </div>
    </form>
  );
}
