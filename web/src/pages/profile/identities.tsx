/** Identities at the provider by which one signs in: link one, unlink it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useIdentityLink, useIdentityUnlink } from "../../api/changes";
import type { AccountView } from "../../api/client";
import { identities, waysIn } from "../../api/queries";
import { Collection } from "../../ui/collection";
import { TextField } from "../../ui/controls";
import { When } from "../../ui/when";

export function Identities({ account }: { account: AccountView }) {
  const { t } = useTranslation();
  const list = useQuery(identities(account.name));
  const ways = useQuery(waysIn).data;
  const [link, unlink] = [useIdentityLink(), useIdentityUnlink()];
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  // Where there is no provider, and never was one for this account, there is nothing to say.
  if (!ways?.oidc && !list.data?.items.length) return null;
  const needsCode = account.second_factor;
  const begin = () =>
    link.mutate(needsCode ? { password, code } : { password }, {
      onSuccess: ({ address }) => window.location.assign(address),
    });
  return (
    <Collection
      title={t("identities.title")}
      add={
        ways?.oidc
          ? {
              action: t("identities.link"),
              fields: (
                <>
                  <TextField
                    label={t("profile.current")}
                    value={password}
                    onChange={setPassword}
                    secret
                    autoComplete="current-password"
                  />
                  {needsCode ? (
                    <TextField
                      label={t("signIn.code")}
                      value={code}
                      onChange={setCode}
                      autoComplete="one-time-code"
                    />
                  ) : null}
                </>
              ),
              blocked: (!password || (needsCode && !code)) && t("identities.needsProof"),
              error: link.error,
              busy: link.isPending,
              onAdd: begin,
            }
          : undefined
      }
      list={list}
      rowKey={(one) => one.id}
      empty={t("identities.none")}
      columns={[
        { key: "issuer", title: t("identities.issuer"), render: (one) => one.issuer },
        { key: "subject", title: t("identities.subject"), render: (one) => <code>{one.subject}</code> },
        {
          key: "linked",
          title: t("identities.linked"),
          width: 140,
          render: (one) => (one.linked_at ? <When at={one.linked_at} /> : "–"),
        },
      ]}
      remove={{
        action: t("identities.unlink"),
        title: (one) => t("identities.unlinkTitle", { subject: one.subject }),
        text: t("identities.unlinkText"),
        onRemove: (one) => unlink.mutateAsync({ name: account.name, id: one.id }),
      }}
    />
  );
}
