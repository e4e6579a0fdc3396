/** What will change in my code? */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { migrate, uploadCode } from "../../api/changes";
import { Failure } from "../../ui/answer";
import { quoted } from "../../ui/command";
import { Button, FileField, Switch, TextField } from "../../ui/controls";
import { Page } from "../../ui/page";
import { Outcome } from "./outcome";
import { digestOf, fromArchive, fromFolder, MOST_BYTES, NoProject, type Project } from "./project";

type Options = { torch: string; main: string; model: string; modelarts: boolean; similar: boolean };

const NONE: Options = { torch: "", main: "", model: "", modelarts: false, similar: false };

/** The command that does the same on one's own machine. */
function commandOf(name: string, { torch, main, model, modelarts, similar }: Options): string {
  return [
    `danlu migrate -i ${quoted(name)} -o out`,
    torch ? `-v ${quoted(torch)}` : "",
    modelarts ? "--modelarts" : "",
    similar ? "--similar" : "",
    main ? `--distributed ${quoted(main)} --model ${quoted(model || "model")}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

export function Migrate() {
  const { t } = useTranslation();
  const [options, setOptions] = useState(NONE);
  const [chosen, setChosen] = useState<{ label: string; read: () => Promise<Project> }>();
  const set =
    <K extends keyof Options>(field: K) =>
    (value: Options[K]) =>
      setOptions((old) => ({ ...old, [field]: value }));
  const run = useMutation({
    mutationFn: async (read: () => Promise<Project>) => {
      const { name, archive } = await read();
      const digest = await digestOf(archive);
      await uploadCode(digest, archive);
      const { torch, main, model, modelarts, similar } = options;
      const result = await migrate({
        code: digest,
        torch: torch || null,
        distributed: main ? { main, model: model || "model" } : null,
        modelarts,
        similar,
      });
      return { name, from: digest, result };
    },
  });
  const choose = (files: File[], read: () => Promise<Project>) => {
    const [first] = files;
    if (!first) return;
    setChosen({ label: first.webkitRelativePath.split("/")[0] || first.name, read });
    run.reset();
  };
  return (
    <Page title={t("nav.migrate")} command={commandOf(chosen?.label ?? "project", options)}>
      <p style={{ margin: 0 }}>{t("migrate.about")}</p>
      <form
        className="panel stack"
        aria-label={t("nav.migrate")}
        onSubmit={(event) => {
          event.preventDefault();
          if (chosen) run.mutate(chosen.read);
        }}
      >
        <div className="row">
          <FileField
            label={t("migrate.folder")}
            isFolder
            onFiles={(files) => choose(files, () => fromFolder(files))}
          />
          <FileField
            label={t("migrate.archive")}
            accept=".zip,.tar,.tgz,.tar.gz,.gz,.zst"
            onFiles={(files) => files[0] && choose(files, () => fromArchive(files[0] as File))}
          />
          <span className="mono">
            {chosen?.label ?? <span className="muted">{t("migrate.nothing")}</span>}
          </span>
        </div>
        <div className="form">
          <TextField
            label={t("migrate.torch")}
            value={options.torch}
            onChange={set("torch")}
            placeholder="2.1.0"
          />
          <TextField
            label={t("migrate.main")}
            value={options.main}
            onChange={set("main")}
            placeholder="train.py"
            hint={t("migrate.mainHint")}
          />
          <TextField
            label={t("migrate.model")}
            value={options.model}
            onChange={set("model")}
            placeholder="model"
          />
        </div>
        <div className="row" style={{ gap: 24 }}>
          <Switch label={t("migrate.modelarts")} checked={options.modelarts} onChange={set("modelarts")} />
          <Switch label={t("migrate.similar")} checked={options.similar} onChange={set("similar")} />
        </div>
        {run.error ? <Trouble error={run.error} /> : null}
        <div>
          <Button submit kind="primary" busy={run.isPending} blocked={!chosen && t("migrate.chooseFirst")}>
            {t("migrate.start")}
          </Button>
        </div>
      </form>
      {run.data ? <Outcome {...run.data} /> : null}
    </Page>
  );
}

function Trouble({ error }: { error: Error }) {
  const { t } = useTranslation();
  if (!(error instanceof NoProject)) return <Failure error={error} />;
  const words = {
    empty: t("migrate.empty"),
    large: t("migrate.large", { most: MOST_BYTES >> 20 }),
    unknown: t("migrate.unknown"),
  };
  return <Failure error={new Error(words[error.why])} />;
}
