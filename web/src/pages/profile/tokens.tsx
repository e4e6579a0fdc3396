/** What lets programs and browsers in as somebody. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useTokenMake, useTokenRevoke } from "../../api/changes";
import { tokens } from "../../api/queries";
import { Collection, Once } from "../../ui/collection";
import { Select, TextField } from "../../ui/controls";
import { When } from "../../ui/when";

const SCOPES = ["read", "jobs", "all"] as const;

export function Tokens({ name, isOwn = true }: { name: string; isOwn?: boolean }) {
  const { t } = useTranslation();
  const list = useQuery(tokens(name));
  const [make, revoke] = [useTokenMake(), useTokenRevoke()];
  const [purpose, setPurpose] = useState("");
  const [scope, setScope] = useState<(typeof SCOPES)[number]>("jobs");
  return (
    <Collection
      title={t("profile.tokens")}
      add={
        isOwn
          ? {
              action: t("profile.makeToken"),
              fields: (
                <>
                  <TextField label={t("profile.tokenName")} value={purpose} onChange={setPurpose} />
                  <Select
                    label={t("profile.scope")}
                    value={scope}
                    onChange={(value) => setScope(value as typeof scope)}
                    options={SCOPES.map((value) => ({ value, label: t(`scope.${value}`) }))}
                  />
                </>
              ),
              blocked: !purpose && t("profile.needsName"),
              error: make.error,
              busy: make.isPending,
              onAdd: () => make.mutate({ name: purpose, scope }, { onSuccess: () => setPurpose("") }),
            }
          : undefined
      }
      made={make.data ? <Once secret={make.data.secret} copy={t("profile.copySecret")} /> : null}
      list={list}
      rowKey={(token) => token.id}
      empty={t("profile.noTokens")}
      columns={[
        { key: "name", title: t("job.name"), render: (token) => token.name },
        {
          key: "kind",
          title: t("profile.kind"),
          width: 170,
          render: (token) => t(`token.${token.kind}` as "token.api", { defaultValue: token.kind }),
        },
        { key: "scope", title: t("profile.scope"), width: 130, render: (token) => t(`scope.${token.scope}`) },
        {
          key: "made",
          title: t("profile.made"),
          width: 130,
          render: (token) => <When at={token.created_at} />,
        },
        {
          key: "used",
          title: t("profile.used"),
          width: 130,
          render: (token) => (token.last_used_at ? <When at={token.last_used_at} /> : "–"),
        },
        {
          key: "expires",
          title: t("profile.expires"),
          width: 130,
          render: (token) => (token.expires_at ? <When at={token.expires_at} /> : "–"),
        },
      ]}
      remove={{
        action: t("profile.revoke"),
        title: (token) => t("profile.revokeTitle", { name: token.name }),
        text: t("profile.revokeText"),
        onRemove: (token) => revoke.mutateAsync({ name, id: token.id }),
      }}
    />
  );
}
