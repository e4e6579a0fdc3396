import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useRole } from "../../api/changes";
import { accounts, members, workspaces } from "../../api/queries";
import { Answer, Failure } from "../../ui/answer";
import { Button, Select, TextField } from "../../ui/controls";
import { Table } from "../../ui/table";
import { Invitations, Secrets } from "./invitations";

const ROLES = ["viewer", "member", "owner"] as const;
type Role = (typeof ROLES)[number];

export function Members() {
  const { t } = useTranslation();
  const known = useQuery(workspaces).data?.items.map((workspace) => workspace.name) ?? [];
  const people = useQuery(accounts).data?.items ?? [];
  const named = people.flatMap((account) => account.workspaces.map((membership) => membership.workspace));
  const names = [...new Set([...known, ...named])].sort();
  const [chosen, setChosen] = useState("");
  const workspace = chosen || names[0] || "default";
  const list = useQuery(members(workspace));
  const change = useRole();
  const [account, setAccount] = useState("");
  const [role, setRole] = useState<Role>("member");
  const roles = ROLES.map((value) => ({ value, label: t(`role.${value}`) }));
  return (
    <>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate({ name: workspace, account, role });
        }}
      >
        <div className="form">
          <TextField label={t("job.workspace")} value={workspace} onChange={setChosen} />
          <TextField label={t("admin.account")} value={account} onChange={setAccount} />
          <Select
            label={t("profile.role")}
            value={role}
            onChange={(value) => setRole(value as Role)}
            options={roles}
          />
        </div>
        {change.error ? <Failure error={change.error} /> : null}
        <div>
          <Button submit blocked={!account && t("profile.needsName")}>
            {t("admin.addMember")}
          </Button>
        </div>
      </form>
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("nav.members")}
            narrow
            rows={items}
            rowKey={(member) => member.account}
            empty={<p>{t("admin.noMembers")}</p>}
            columns={[
              { key: "account", title: t("admin.account"), render: (member) => member.account },
              {
                key: "role",
                title: t("profile.role"),
                width: 160,
                render: (member) => t(`role.${member.role}`),
              },
              {
                key: "remove",
                title: <span className="visually-hidden">{t("admin.remove")}</span>,
                width: 120,
                render: (member) => (
                  <Button
                    small
                    onClick={() => change.mutate({ name: workspace, account: member.account, role: null })}
                  >
                    {t("admin.remove")}
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Answer>
      <Invitations workspace={workspace} />
      <Secrets workspace={workspace} />
    </>
  );
}
