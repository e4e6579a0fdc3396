/** What belongs to a workspace beside its members: who asks for it, invitations into it, and secrets for its jobs. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAdmission, useDisinvite, useInvite, useSecretDelete, useSecretSet } from "../../api/changes";
import { applicants, invitations, secrets } from "../../api/queries";
import { paths } from "../../app/paths";
import { Failure } from "../../ui/answer";
import { Collection, Once } from "../../ui/collection";
import { Button, TextField } from "../../ui/controls";
import { When } from "../../ui/when";

/** Those who registered and named this workspace. */
export function Applicants({ workspace }: { workspace: string }) {
  const { t } = useTranslation();
  const list = useQuery(applicants(workspace));
  const decide = useAdmission();
  return (
    <>
      {decide.error ? <Failure error={decide.error} /> : null}
      <Collection
        title={t("applicants.title")}
        narrow
        list={list}
        rowKey={(one) => one.account}
        empty={t("applicants.none")}
        columns={[
          { key: "account", title: t("admin.account"), render: (one) => one.account },
          { key: "email", title: t("signIn.email"), render: (one) => one.email },
          {
            key: "since",
            title: t("profile.since"),
            width: 150,
            render: (one) => <When at={one.created_at} />,
          },
          {
            key: "admit",
            title: <span className="visually-hidden">{t("applicants.admit")}</span>,
            width: 110,
            render: (one) => (
              <Button
                small
                kind="primary"
                busy={decide.isPending}
                label={`${t("applicants.admit")} ${one.account}`}
                onClick={() => decide.mutate({ workspace, account: one.account, isLetIn: true })}
              >
                {t("applicants.admit")}
              </Button>
            ),
          },
        ]}
        remove={{
          action: t("applicants.turnAway"),
          title: (one) => t("applicants.turnAwayTitle", { name: one.account }),
          text: t("applicants.turnAwayText"),
          onRemove: (one) => decide.mutateAsync({ workspace, account: one.account, isLetIn: false }),
        }}
      />
    </>
  );
}

export function Invitations({ workspace }: { workspace: string }) {
  const { t } = useTranslation();
  const list = useQuery(invitations(workspace));
  const [invite, disinvite] = [useInvite(), useDisinvite()];
  const link = (secret: string) => `${window.location.origin}${paths.register()}#link=${secret}`;
  return (
    <Collection
      title={t("invite.title")}
      narrow
      add={{
        action: t("invite.make"),
        error: invite.error,
        busy: invite.isPending,
        onAdd: () => invite.mutate({ workspace, role: "member" }),
      }}
      made={
        invite.data ? (
          <Once note={t("invite.once")} secret={link(invite.data.secret)} copy={t("admin.copyLink")} />
        ) : null
      }
      list={list}
      rowKey={(one) => one.id}
      empty={t("invite.none")}
      columns={[
        { key: "by", title: t("invite.by"), render: (one) => one.by },
        { key: "role", title: t("profile.role"), width: 140, render: (one) => t(`role.${one.role}`) },
        {
          key: "expires",
          title: t("profile.expires"),
          width: 150,
          render: (one) => <When at={one.expires_at} />,
        },
      ]}
      remove={{
        action: t("profile.revoke"),
        title: () => t("invite.removeTitle"),
        text: t("invite.removeText"),
        onRemove: (one) => disinvite.mutateAsync({ workspace, id: one.id }),
      }}
    />
  );
}

/** Values are never shown again: jobs get them, people do not. */
export function Secrets({ workspace, isOwner }: { workspace: string; isOwner: boolean }) {
  const { t } = useTranslation();
  const list = useQuery(secrets(workspace));
  const [set, remove] = [useSecretSet(), useSecretDelete()];
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const obstacle = isOwner ? undefined : t("obstacle.owner");
  const clear = () => {
    setName("");
    setValue("");
  };
  return (
    <Collection
      title={t("secrets.title")}
      narrow
      add={{
        action: t("secrets.set"),
        fields: (
          <>
            <TextField
              label={t("secrets.name")}
              value={name}
              onChange={setName}
              mono
              placeholder="HF_TOKEN"
              autoComplete="off"
            />
            <TextField
              label={t("secrets.value")}
              value={value}
              onChange={setValue}
              secret
              autoComplete="off"
            />
          </>
        ),
        blocked: obstacle ?? ((!name || !value) && t("secrets.needsBoth")),
        error: set.error,
        busy: set.isPending,
        onAdd: () => set.mutate({ workspace, name, value }, { onSuccess: clear }),
      }}
      list={list}
      rowKey={(one) => one.name}
      empty={t("secrets.none")}
      columns={[
        { key: "name", title: t("secrets.name"), render: (one) => <code>{one.name}</code> },
        { key: "by", title: t("admin.by"), width: 140, render: (one) => one.changed_by },
        { key: "at", title: t("files.modified"), width: 150, render: (one) => <When at={one.changed_at} /> },
      ]}
      remove={{
        action: t("admin.remove"),
        blocked: obstacle,
        title: (one) => t("secrets.removeTitle", { name: one.name }),
        text: t("secrets.removeText"),
        onRemove: (one) => remove.mutateAsync({ workspace, name: one.name }),
      }}
    />
  );
}
