/** What belongs to a workspace beside its members: invitations into it, and secrets for its jobs. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useDisinvite, useInvite, useSecretDelete, useSecretSet } from "../../api/changes";
import { invitations, secrets } from "../../api/queries";
import { paths } from "../../app/paths";
import { Answer, Failure } from "../../ui/answer";
import { Copy } from "../../ui/command";
import { Button, Confirm, TextField } from "../../ui/controls";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";

export function Invitations({ workspace }: { workspace: string }) {
  const { t } = useTranslation();
  const list = useQuery({ ...invitations(workspace), retry: false });
  const [invite, disinvite] = [useInvite(), useDisinvite()];
  const link = invite.data
    ? `${window.location.origin}${paths.register()}#link=${invite.data.secret}`
    : undefined;
  return (
    <section className="stack" style={{ gap: 8 }}>
      <div className="row spread">
        <h2>{t("invite.title")}</h2>
        <Button small onClick={() => invite.mutate({ workspace, role: "member" })}>
          {t("invite.make")}
        </Button>
      </div>
      {invite.error ? <Failure error={invite.error} /> : null}
      {link ? (
        <div className="banner good" role="status">
          <div>
            <p>{t("invite.once")}</p>
            <code style={{ overflowWrap: "anywhere" }}>{link}</code>
          </div>
          <Copy text={link} label={t("admin.copyLink")} />
        </div>
      ) : null}
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("invite.title")}
            narrow
            rows={items}
            rowKey={(one) => one.id}
            empty={<p>{t("invite.none")}</p>}
            columns={[
              { key: "by", title: t("admin.by"), render: (one) => one.by },
              { key: "role", title: t("profile.role"), width: 140, render: (one) => t(`role.${one.role}`) },
              {
                key: "expires",
                title: t("profile.expires"),
                width: 150,
                render: (one) => <When at={one.expires_at} />,
              },
              {
                key: "remove",
                title: <span className="visually-hidden">{t("admin.remove")}</span>,
                width: 110,
                render: (one) => (
                  <Button small onClick={() => disinvite.mutate({ workspace, id: one.id })}>
                    {t("admin.remove")}
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Answer>
    </section>
  );
}

/** Values are never shown again: jobs get them, people do not. */
export function Secrets({ workspace }: { workspace: string }) {
  const { t } = useTranslation();
  const list = useQuery({ ...secrets(workspace), retry: false });
  const [set, remove] = [useSecretSet(), useSecretDelete()];
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const clear = () => {
    setName("");
    setValue("");
  };
  return (
    <section className="stack" style={{ gap: 8 }}>
      <h2>{t("secrets.title")}</h2>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          set.mutate({ workspace, name, value }, { onSuccess: clear });
        }}
      >
        <div className="form">
          <TextField
            label={t("secrets.name")}
            value={name}
            onChange={setName}
            mono
            placeholder="HF_TOKEN"
            autoComplete="off"
          />
          <TextField label={t("secrets.value")} value={value} onChange={setValue} secret autoComplete="off" />
        </div>
        {set.error ? <Failure error={set.error} /> : null}
        <div>
          <Button submit blocked={(!name || !value) && t("secrets.needsBoth")}>
            {t("common.save")}
          </Button>
        </div>
      </form>
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("secrets.title")}
            narrow
            rows={items}
            rowKey={(one) => one.name}
            empty={<p>{t("secrets.none")}</p>}
            columns={[
              { key: "name", title: t("secrets.name"), render: (one) => <code>{one.name}</code> },
              { key: "by", title: t("admin.by"), width: 140, render: (one) => one.changed_by },
              {
                key: "at",
                title: t("files.modified"),
                width: 150,
                render: (one) => <When at={one.changed_at} />,
              },
              {
                key: "remove",
                title: <span className="visually-hidden">{t("admin.remove")}</span>,
                width: 110,
                render: (one) => (
                  <Confirm
                    small
                    kind="danger"
                    title={t("secrets.removeTitle", { name: one.name })}
                    text={t("secrets.removeText")}
                    action={t("admin.remove")}
                    onConfirm={() => remove.mutateAsync({ workspace, name: one.name })}
                  >
                    {t("admin.remove")}
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
