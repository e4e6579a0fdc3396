import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAccountChange, useAccountCreate, usePasswordLink } from "../../api/changes";
import type { AccountView } from "../../api/client";
import { accounts } from "../../api/queries";
import { paths } from "../../app/paths";
import { useMe } from "../../app/session";
import { Answer, Failure } from "../../ui/answer";
import { Once } from "../../ui/collection";
import { Button, TextField } from "../../ui/controls";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";
import { Account } from "./account";

/** Those who wait first: somebody has to decide about them. */
const ORDER: Record<AccountView["standing"], number> = { waiting: 0, active: 1, disabled: 2 };

/** The address at which somebody sets their first password. */
const linkOf = (name: string, secret: string) =>
  `${window.location.origin}${paths.setPassword()}#account=${name}&link=${secret}`;

export function Accounts() {
  const { t } = useTranslation();
  const list = useQuery(accounts);
  const change = useAccountChange();
  const link = usePasswordLink();
  const me = useMe();
  const [managed, setManaged] = useState<string>();
  const account = list.data?.items.find(({ name }) => name === managed);
  return (
    <>
      <NewAccount />
      {account ? <Account account={account} onDone={() => setManaged(undefined)} key={managed} /> : null}
      {change.error ? <Failure error={change.error} /> : null}
      {link.error ? <Failure error={link.error} /> : null}
      {link.data?.password_link ? (
        <LinkShown name={link.data.account.name} secret={link.data.password_link} />
      ) : null}
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("nav.accounts")}
            rows={[...items].sort((one, other) => ORDER[one.standing] - ORDER[other.standing])}
            rowKey={(account) => account.name}
            empty={<p>{t("admin.noAccounts")}</p>}
            columns={[
              { key: "name", title: t("signIn.name"), width: "16%", render: (account) => account.name },
              { key: "email", title: t("signIn.email"), render: (account) => account.email ?? "–" },
              {
                key: "standing",
                title: t("admin.standing"),
                width: 120,
                render: (account) => t(`standing.${account.standing}`),
              },
              {
                key: "role",
                title: t("profile.role"),
                width: 130,
                render: (account) => (account.admin ? t("profile.admin") : t("profile.person")),
              },
              {
                key: "since",
                title: t("profile.since"),
                width: 130,
                render: (account) => <When at={account.created_at} />,
              },
              {
                key: "actions",
                title: <span className="visually-hidden">{t("admin.actions")}</span>,
                width: 350,
                render: (account) => (
                  <span className="row" style={{ flexWrap: "nowrap" }}>
                    {account.standing === "active" ? (
                      <Button
                        small
                        blocked={account.name === me.account.name && t("obstacle.self")}
                        onClick={() => change.mutate({ name: account.name, standing: "disabled" })}
                      >
                        {t("admin.disable")}
                      </Button>
                    ) : (
                      <Button
                        small
                        kind={account.standing === "waiting" ? "primary" : "plain"}
                        label={`${account.standing === "waiting" ? t("admin.approve") : t("admin.enable")} ${account.name}`}
                        onClick={() => change.mutate({ name: account.name, standing: "active" })}
                      >
                        {account.standing === "waiting" ? t("admin.approve") : t("admin.enable")}
                      </Button>
                    )}
                    <Button small onClick={() => link.mutate(account.name)}>
                      {t("admin.passwordLink")}
                    </Button>
                    <Button
                      small
                      label={t("admin.manageOf", { name: account.name })}
                      onClick={() => setManaged(account.name)}
                    >
                      {t("admin.manage")}
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </Answer>
    </>
  );
}

function LinkShown({ name, secret }: { name: string; secret: string }) {
  const { t } = useTranslation();
  return (
    <Once note={t("admin.linkOnce", { name })} secret={linkOf(name, secret)} copy={t("admin.copyLink")} />
  );
}

function NewAccount() {
  const { t } = useTranslation();
  const create = useAccountCreate();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  return (
    <form
      className="panel stack"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ name, email: email || null });
      }}
    >
      <div className="form">
        <TextField label={t("signIn.name")} value={name} onChange={setName} />
        <TextField label={t("signIn.email")} value={email} onChange={setEmail} />
      </div>
      {create.error ? <Failure error={create.error} /> : null}
      {create.data?.password_link ? (
        <LinkShown name={create.data.account.name} secret={create.data.password_link} />
      ) : null}
      <div>
        <Button submit blocked={!name && t("profile.needsName")}>
          {t("admin.create")}
        </Button>
      </div>
    </form>
  );
}
