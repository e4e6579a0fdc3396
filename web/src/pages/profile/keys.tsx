/** Keys by which programs come in as oneself: for SSH and for the object store. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useS3KeyMake, useS3KeyRemove, useSshKeyAdd, useSshKeyRemove } from "../../api/changes";
import { s3Keys, sshKeys } from "../../api/queries";
import { Collection, Once } from "../../ui/collection";
import { TextField } from "../../ui/controls";
import { When } from "../../ui/when";

export function SshKeys({ name }: { name: string }) {
  const { t } = useTranslation();
  const list = useQuery(sshKeys(name));
  const [add, remove] = [useSshKeyAdd(), useSshKeyRemove()];
  const [key, setKey] = useState("");
  return (
    <Collection
      title={t("keys.ssh")}
      add={{
        action: t("keys.add"),
        fields: (
          <TextField
            wide
            label={t("keys.publicKey")}
            value={key}
            onChange={setKey}
            mono
            placeholder="ssh-ed25519 AAAA… ada@laptop"
          />
        ),
        blocked: !key && t("keys.needsKey"),
        error: add.error,
        busy: add.isPending,
        onAdd: () => add.mutate({ name, key }, { onSuccess: () => setKey("") }),
      }}
      list={list}
      rowKey={(one) => one.id}
      empty={t("keys.noSsh")}
      columns={[
        { key: "name", title: t("job.name"), width: "24%", render: (one) => one.name },
        { key: "print", title: t("keys.fingerprint"), render: (one) => <code>{one.fingerprint}</code> },
        { key: "made", title: t("profile.made"), width: 140, render: (one) => <When at={one.created_at} /> },
      ]}
      remove={{
        action: t("admin.remove"),
        title: (one) => t("keys.removeTitle", { name: one.name }),
        text: t("keys.removeText"),
        onRemove: (one) => remove.mutateAsync({ name, id: one.id }),
      }}
    />
  );
}

export function S3Keys({ name }: { name: string }) {
  const { t } = useTranslation();
  const list = useQuery(s3Keys(name));
  const [make, remove] = [useS3KeyMake(), useS3KeyRemove()];
  const [purpose, setPurpose] = useState("");
  return (
    <Collection
      title={t("keys.s3")}
      add={{
        action: t("keys.make"),
        fields: <TextField label={t("keys.purpose")} value={purpose} onChange={setPurpose} />,
        blocked: !purpose && t("profile.needsName"),
        error: make.error,
        busy: make.isPending,
        onAdd: () => make.mutate({ name, purpose }, { onSuccess: () => setPurpose("") }),
      }}
      made={
        make.data ? (
          <Once
            secret={`${make.data.key.access_key} ${make.data.secret_key}`}
            copied={make.data.secret_key}
            copy={t("keys.copySecret")}
          />
        ) : null
      }
      list={list}
      rowKey={(one) => one.access_key}
      empty={t("keys.noS3")}
      columns={[
        { key: "name", title: t("job.name"), render: (one) => one.name },
        { key: "key", title: t("keys.accessKey"), render: (one) => <code>{one.access_key}</code> },
        { key: "made", title: t("profile.made"), width: 140, render: (one) => <When at={one.created_at} /> },
      ]}
      remove={{
        action: t("admin.remove"),
        title: (one) => t("keys.removeTitle", { name: one.name }),
        text: t("keys.removeText"),
        onRemove: (one) => remove.mutateAsync({ name, id: one.access_key }),
      }}
    />
  );
}
