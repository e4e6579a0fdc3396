/** Keys by which programs come in as oneself: for SSH and for the object store. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useS3KeyMake, useS3KeyRemove, useSshKeyAdd, useSshKeyRemove } from "../../api/changes";
import { s3Keys, sshKeys } from "../../api/queries";
import { Answer, Failure } from "../../ui/answer";
import { Copy } from "../../ui/command";
import { Button, Confirm, TextField } from "../../ui/controls";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";

export function SshKeys({ name }: { name: string }) {
  const { t } = useTranslation();
  const list = useQuery(sshKeys(name));
  const [add, remove] = [useSshKeyAdd(), useSshKeyRemove()];
  const [key, setKey] = useState("");
  return (
    <section className="stack" style={{ gap: 8 }}>
      <h2>{t("keys.ssh")}</h2>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate({ name, key }, { onSuccess: () => setKey("") });
        }}
      >
        <TextField
          label={t("keys.publicKey")}
          value={key}
          onChange={setKey}
          mono
          placeholder="ssh-ed25519 AAAA… ada@laptop"
        />
        {add.error ? <Failure error={add.error} /> : null}
        <div>
          <Button submit blocked={!key && t("keys.needsKey")}>
            {t("keys.add")}
          </Button>
        </div>
      </form>
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("keys.ssh")}
            rows={items}
            rowKey={(one) => one.id}
            empty={<p>{t("keys.noSsh")}</p>}
            columns={[
              { key: "name", title: t("signIn.name"), width: "24%", render: (one) => one.name },
              { key: "print", title: t("keys.fingerprint"), render: (one) => <code>{one.fingerprint}</code> },
              {
                key: "made",
                title: t("profile.made"),
                width: 140,
                render: (one) => <When at={one.created_at} />,
              },
              {
                key: "remove",
                title: <span className="visually-hidden">{t("admin.remove")}</span>,
                width: 100,
                render: (one) => (
                  <Confirm
                    small
                    kind="danger"
                    title={t("keys.removeTitle", { name: one.name })}
                    text={t("keys.removeText")}
                    action={t("admin.remove")}
                    onConfirm={() => remove.mutateAsync({ name, id: one.id })}
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

export function S3Keys({ name }: { name: string }) {
  const { t } = useTranslation();
  const list = useQuery(s3Keys(name));
  const [make, remove] = [useS3KeyMake(), useS3KeyRemove()];
  const [purpose, setPurpose] = useState("");
  return (
    <section className="stack" style={{ gap: 8 }}>
      <h2>{t("keys.s3")}</h2>
      <form
        className="panel stack"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate({ name, purpose }, { onSuccess: () => setPurpose("") });
        }}
      >
        <TextField label={t("keys.purpose")} value={purpose} onChange={setPurpose} />
        {make.error ? <Failure error={make.error} /> : null}
        {make.data ? (
          <div className="banner good" role="status">
            <div>
              <p>{t("profile.secretOnce")}</p>
              <code>
                {make.data.key.access_key} {make.data.secret_key}
              </code>
            </div>
            <Copy text={make.data.secret_key} label={t("keys.copySecret")} />
          </div>
        ) : null}
        <div>
          <Button submit blocked={!purpose && t("profile.needsName")}>
            {t("keys.make")}
          </Button>
        </div>
      </form>
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={t("keys.s3")}
            rows={items}
            rowKey={(one) => one.access_key}
            empty={<p>{t("keys.noS3")}</p>}
            columns={[
              { key: "name", title: t("signIn.name"), render: (one) => one.name },
              { key: "key", title: t("keys.accessKey"), render: (one) => <code>{one.access_key}</code> },
              {
                key: "made",
                title: t("profile.made"),
                width: 140,
                render: (one) => <When at={one.created_at} />,
              },
              {
                key: "remove",
                title: <span className="visually-hidden">{t("admin.remove")}</span>,
                width: 100,
                render: (one) => (
                  <Confirm
                    small
                    kind="danger"
                    title={t("keys.removeTitle", { name: one.name })}
                    text={t("keys.removeText")}
                    action={t("admin.remove")}
                    onConfirm={() => remove.mutateAsync({ name, id: one.access_key })}
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
