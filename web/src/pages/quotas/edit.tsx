import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useWorkspaceSet } from "../../api/changes";
import { Refusal, type WorkspaceView } from "../../api/client";
import { kindName } from "../../format/amounts";
import { Failure } from "../../ui/answer";
import { Button, TextField } from "../../ui/controls";
import { KINDS, RESOURCES, rulesOf, type Texts, textsOf } from "./rules";

/** Amounts of everything that is shared out, as one types them. */
export function QuotaFields({
  texts,
  onChange,
  error,
}: {
  texts: Texts;
  onChange: (texts: Texts) => void;
  error: unknown;
}) {
  const { t } = useTranslation();
  const fields = error instanceof Refusal ? error.fields : [];
  return KINDS.map((kind) => (
    <fieldset key={kind} className="form" style={{ border: 0, padding: 0, margin: 0 }}>
      <legend style={{ fontWeight: 600 }}>{t(`quotas.kind.${kind}`)}</legend>
      {RESOURCES.map((resource) => {
        const label =
          resource === "ascend" || resource === "nvidia" ? kindName(resource) : t(`spec.${resource}`);
        const key = `${kind}.${resource}` as const;
        return (
          <TextField
            key={key}
            label={t("common.labelled", { label: t(`quotas.kind.${kind}`), value: label })}
            value={texts[key]}
            onChange={(value) => onChange({ ...texts, [key]: value })}
            error={fields.find(({ field }) => field.endsWith(key))?.message}
          />
        );
      })}
    </fieldset>
  ));
}

/** What a workspace is promised and may use. Empty means: nothing promised, no limit. */
export function EditQuota({
  workspace,
  onDone,
}: {
  workspace: WorkspaceView | undefined;
  onDone: () => void;
}) {
  const { t } = useTranslation();
  const [name, setName] = useState(workspace?.name ?? "");
  const [texts, setTexts] = useState(() => textsOf(workspace));
  const save = useWorkspaceSet();
  const submit = async () => {
    await save.mutateAsync({ name, rules: rulesOf(workspace, texts) });
    onDone();
  };
  return (
    <form
      className="panel stack"
      aria-label={t("quotas.form")}
      onSubmit={(event) => {
        event.preventDefault();
        submit().catch(() => undefined);
      }}
    >
      {workspace ? (
        <h2>{workspace.name}</h2>
      ) : (
        <TextField label={t("job.workspace")} value={name} onChange={setName} autoFocus />
      )}
      <QuotaFields texts={texts} onChange={setTexts} error={save.error} />
      {save.error ? <Failure error={save.error} /> : null}
      <div className="row">
        <Button submit kind="primary" blocked={!name && t("profile.needsName")} busy={save.isPending}>
          {t("common.save")}
        </Button>
        <Button onClick={onDone}>{t("common.cancel")}</Button>
      </div>
    </form>
  );
}
