/** Who is in a workspace, who may come, and which secrets its jobs get. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useRole } from "../../api/changes";
import { members, workspaces } from "../../api/queries";
import { useAddress } from "../../app/address";
import { roleIn, useMe } from "../../app/session";
import { Collection } from "../../ui/collection";
import { quoted } from "../../ui/command";
import { Select, SmallSelect, TextField } from "../../ui/controls";
import { Page } from "../../ui/page";
import { Applicants, Invitations, Secrets } from "./belongings";

const ROLES = ["viewer", "member", "owner"] as const;
type Role = (typeof ROLES)[number];

export function Members() {
  const { t } = useTranslation();
  const me = useMe();
  const { query, set } = useAddress();
  const all = useQuery({ ...workspaces, enabled: me.account.admin }).data?.items ?? [];
  const own = me.account.workspaces.map((membership) => membership.workspace);
  const asked = query.get("workspace");
  const names = [...new Set([...own, ...all.map(({ name }) => name), ...(asked ? [asked] : [])])].sort();
  const workspace = asked ?? own[0] ?? names[0] ?? (me.account.admin ? "default" : undefined);
  if (workspace === undefined) {
    return (
      <Page title={t("nav.members")} command="danlu workspace members WORKSPACE">
        <div className="note">{t("members.nowhere")}</div>
      </Page>
    );
  }
  const role = roleIn(me, workspace);
  return (
    <Page
      title={t("nav.members")}
      command={`danlu workspace members ${quoted(workspace)}`}
      actions={
        <SmallSelect
          label={t("job.workspace")}
          value={workspace}
          onChange={(name) => set({ workspace: name })}
          options={[...new Set([...names, workspace])].map((name) => ({ value: name, label: name }))}
        />
      }
    >
      <People key={`people ${workspace}`} workspace={workspace} isOwner={role === "owner"} />
      {role === "owner" ? (
        <>
          <Applicants key={`applicants ${workspace}`} workspace={workspace} />
          <Invitations key={`invitations ${workspace}`} workspace={workspace} />
        </>
      ) : null}
      {role === "owner" || role === "member" ? (
        <Secrets key={`secrets ${workspace}`} workspace={workspace} isOwner={role === "owner"} />
      ) : null}
    </Page>
  );
}

function People({ workspace, isOwner }: { workspace: string; isOwner: boolean }) {
  const { t } = useTranslation();
  const list = useQuery(members(workspace));
  const change = useRole();
  const [account, setAccount] = useState("");
  const [role, setRole] = useState<Role>("member");
  const obstacle = isOwner ? undefined : t("obstacle.owner");
  return (
    <Collection
      title={workspace}
      narrow
      add={{
        action: t("admin.addMember"),
        fields: (
          <>
            <TextField label={t("admin.account")} value={account} onChange={setAccount} />
            <Select
              label={t("profile.role")}
              value={role}
              onChange={(value) => setRole(value as Role)}
              options={ROLES.map((value) => ({ value, label: t(`role.${value}`) }))}
            />
          </>
        ),
        blocked: obstacle ?? (!account && t("profile.needsName")),
        error: change.error,
        busy: change.isPending,
        onAdd: () => change.mutate({ name: workspace, account, role }, { onSuccess: () => setAccount("") }),
      }}
      list={list}
      rowKey={(member) => member.account}
      empty={t("admin.noMembers")}
      columns={[
        { key: "account", title: t("admin.account"), render: (member) => member.account },
        { key: "role", title: t("profile.role"), width: 160, render: (member) => t(`role.${member.role}`) },
      ]}
      remove={{
        action: t("admin.remove"),
        blocked: obstacle,
        title: (member) => t("members.removeTitle", { name: member.account, workspace }),
        text: t("members.removeText"),
        onRemove: (member) => change.mutateAsync({ name: workspace, account: member.account, role: null }),
      }}
    />
  );
}
