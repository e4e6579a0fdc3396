/** Will it run, and when? */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate, useSearchParams } from "react-router";
import { useParse, useSubmit } from "../../api/changes";
import { type JobSpec, Refusal } from "../../api/client";
import { dryRun, job as jobQuery } from "../../api/queries";
import { paths } from "../../app/paths";
import { useMe } from "../../app/session";
import { Failure } from "../../ui/answer";
import { Copy } from "../../ui/command";
import { Button, FileField, SmallSelect, Switch, TextField } from "../../ui/controls";
import { useDroppedFile } from "../../ui/dropped-file";
import { Page } from "../../ui/page";
import { commandOf, type Draft, likeJob, migrated, read, TEMPLATES, textOf, withOffer } from "./draft";
import { SpecForm } from "./form";
import { type ImportedFile, ImportReport } from "./import-report";
import { imported } from "./imported";
import { forgetDraft, keepDraft, keptDraft } from "./kept-draft";
import { Verdict } from "./verdict";

const CHECK_AFTER_MS = 300;

const JOB_FILES = ".yaml,.yml,.json,.sbatch,.slurm,.sh";

/** More than the server reads: what is longer is refused there, and need not be read here. */
const MOST_OF_A_FILE = 256 << 10;

/** The value as it was a moment ago: what somebody still types is not asked about. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), CHECK_AFTER_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Under which a submission counts once. Not `randomUUID`, which pages that came over plain HTTP do not have. */
const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join("-");

export function Submit() {
  const { t } = useTranslation();
  const me = useMe();
  const [query] = useSearchParams();
  const like = Number(query.get("like") ?? 0) || undefined;
  const account = me.account.name;
  // A page that was opened about another job begins with that one.
  const isPlain = query.size === 0;
  const [kept] = useState(() => (isPlain ? keptDraft(account) : undefined));
  const [draft, setDraft] = useState<Draft>(() => {
    if (kept) return kept.draft;
    const [code, from, name] = ["code", "from", "name"].map((field) => query.get(field) ?? "");
    return {
      ...(code && from ? migrated(code, from, name ?? "") : TEMPLATES.script),
      workspace: ownWorkspace(me),
    };
  });
  const [text, setText] = useState<string | undefined>(kept?.text);
  const [unreadable, setUnreadable] = useState<string>();
  const navigate = useNavigate();
  const submit = useSubmit();
  const parse = useParse();
  const [report, setReport] = useState<ImportedFile>();
  const [key, setKey] = useState(() => newKey());

  const original = useQuery({ ...jobQuery(like ?? 0), enabled: like !== undefined });
  useEffect(() => {
    if (!original.data) return;
    setDraft(likeJob(original.data.spec));
    setText(undefined);
  }, [original.data]);

  const settled = useSettled(draft);
  const check = useQuery(dryRun(settled.command ? (settled as JobSpec) : undefined));
  const refusal = check.error instanceof Refusal ? check.error : undefined;
  const isSettled = settled === draft && !check.isFetching;
  const change = (next: Draft) => {
    if (isPlain) keepDraft(account, { draft: next });
    setDraft(next);
    setText(undefined);
    setUnreadable(undefined);
    setKey(newKey());
  };
  const write = (next: string) => {
    setText(next);
    const result = read(next);
    if (isPlain) keepDraft(account, { draft: "draft" in result ? result.draft : draft, text: next });
    if ("draft" in result) {
      setDraft(result.draft);
      setUnreadable(undefined);
      setKey(newKey());
    } else setUnreadable(result.error);
  };
  const open = async (file: File) => {
    const text = await file.slice(0, MOST_OF_A_FILE).text();
    setReport(undefined);
    const parsed = await parse.mutateAsync({ file_name: file.name, text });
    const taken = imported(text, parsed, draft.workspace);
    if (taken && "draft" in taken) change(taken.draft);
    else if (taken) write(taken.text);
    setReport({ name: file.name, text, parsed });
  };
  const openOrTell = (file: File) => open(file).catch(() => undefined);
  useDroppedFile(openOrTell);
  const send = async () => {
    const made = await submit.mutateAsync({ spec: draft as JobSpec, key });
    forgetDraft(account);
    await navigate(paths.job(made.id));
  };
  const yaml = text ?? textOf(draft);
  return (
    <Page
      title={t("nav.submit")}
      command={commandOf(draft)}
      actions={
        <>
          <SmallSelect
            label={t("submit.template")}
            value=""
            onChange={(name) =>
              name && change({ ...TEMPLATES[name as keyof typeof TEMPLATES], workspace: draft.workspace })
            }
            options={[
              { value: "", label: t("submit.template") },
              { value: "script", label: t("submit.templateScript") },
              { value: "pytorch", label: t("submit.templatePytorch") },
              { value: "mindspore", label: t("submit.templateMindspore") },
            ]}
          />
          <FileField
            label={t("submit.import")}
            accept={JOB_FILES}
            onFiles={([file]) => file && openOrTell(file)}
          />
          <Button
            kind="primary"
            blocked={unreadable ?? (!draft.command && t("submit.needsCommand"))}
            busy={submit.isPending}
            onClick={() => send().catch(() => undefined)}
          >
            {t("submit.submit")}
          </Button>
        </>
      }
    >
      {submit.error ? <Failure error={submit.error} /> : null}
      {parse.error ? <Failure error={parse.error} /> : null}
      {report ? <ImportReport file={report} /> : null}
      <div className="columns" style={{ gridTemplateColumns: "repeat(auto-fit, minmax(420px, 1fr))" }}>
        <section className="panel stack" aria-label={t("submit.form")}>
          <SpecForm draft={draft} onChange={change} errors={refusal?.fields ?? []} />
          <Switch
            label={t("spec.preemptible")}
            checked={Boolean(draft.preemptible)}
            onChange={(on) => change(on ? { ...draft, preemptible: true } : without(draft, "preemptible"))}
          />
        </section>
        <div className="stack">
          <Verdict
            explanation={check.data}
            refusal={refusal}
            isSettled={isSettled}
            onTake={(set) => change(withOffer(draft, set))}
          />
          <section className="panel" aria-label={t("submit.file")}>
            <div className="row spread">
              <h2>{t("submit.file")}</h2>
              <Copy text={yaml} label={t("spec.copy")} />
            </div>
            <p className="muted">{t("submit.drop")}</p>
            <TextField
              label={t("submit.fileLabel")}
              value={yaml}
              onChange={write}
              lines={10}
              mono
              error={unreadable}
            />
          </section>
        </div>
      </div>
    </Page>
  );
}

function without(draft: Draft, field: string): Draft {
  const { [field]: _, ...rest } = draft;
  return rest as Draft;
}

/** A new job goes where its author may put it: the first workspace they belong to, or their own. */
function ownWorkspace(me: ReturnType<typeof useMe>): string {
  const worksIn = me.account.workspaces.find((membership) => membership.role !== "viewer");
  return worksIn?.workspace ?? (me.account.admin ? "default" : me.account.name);
}
