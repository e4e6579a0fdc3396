/** What if? */
import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { answer, api, type SimulationRun } from "../../api/client";
import { Failure, Loading } from "../../ui/answer";
import { Button, Select, TextField } from "../../ui/controls";
import { Page } from "../../ui/page";
import type { Comparison } from "./compare";

const Outcome = lazy(async () => ({ default: (await import("./outcome")).Outcome }));

const MOST_RUNS = 6;
const POLICIES = ["backfill", "strict", "skip", "balance"] as const;

export function Simulate() {
  const { t } = useTranslation();
  const [runs, setRuns] = useState<SimulationRun[]>(() => [
    { name: t("simulate.asItIs") },
    { name: t("simulate.moreNodes"), nodes: "+1x8:ascend:910B3" },
  ]);
  const [trace, setTrace] = useState<{ name: string; text: string }>();
  const simulate = useMutation({
    mutationFn: async () => {
      const body = { runs, ...(trace ? { trace: trace.text } : {}) };
      return (await answer(api.POST("/simulations", { body }))) as unknown as Comparison;
    },
  });
  const change = (index: number, next: SimulationRun) =>
    setRuns(runs.map((run, other) => (other === index ? next : run)));
  return (
    <Page
      title={t("nav.simulate")}
      command="danlu history export > trace.jsonl && danlu sim replay trace.jsonl"
    >
      <p className="muted" style={{ margin: 0 }}>
        {t("simulate.about")}
      </p>
      <section className="panel row" aria-label={t("simulate.trace")}>
        <span>{trace ? trace.name : t("simulate.own")}</span>
        <label style={{ cursor: "pointer", color: "var(--accent)" }}>
          {t("simulate.upload")}
          <input
            type="file"
            className="visually-hidden"
            onChange={async (event) => {
              const file = event.target.files?.[0];
              if (file) setTrace({ name: file.name, text: await file.text() });
              event.target.value = "";
            }}
          />
        </label>
        {trace ? (
          <Button small onClick={() => setTrace(undefined)}>
            {t("simulate.useOwn")}
          </Button>
        ) : null}
      </section>
      {runs.map((run, index) => (
        <RunForm
          key={index}
          run={run}
          onChange={(next) => change(index, next)}
          onRemove={runs.length > 1 ? () => setRuns(runs.filter((_, other) => other !== index)) : undefined}
        />
      ))}
      <div className="row">
        <Button
          blocked={runs.length >= MOST_RUNS && t("simulate.mostRuns", { count: MOST_RUNS })}
          onClick={() => setRuns([...runs, { name: t("simulate.run", { number: runs.length + 1 }) }])}
        >
          {t("simulate.add")}
        </Button>
        <Button kind="primary" busy={simulate.isPending} onClick={() => simulate.mutate()}>
          {t("simulate.start")}
        </Button>
      </div>
      {simulate.error ? <Failure error={simulate.error} /> : null}
      {simulate.data ? (
        <Suspense fallback={<Loading />}>
          <Outcome comparison={simulate.data} />
        </Suspense>
      ) : null}
    </Page>
  );
}

type FormProps = {
  run: SimulationRun;
  onChange: (run: SimulationRun) => void;
  onRemove: (() => void) | undefined;
};

function RunForm({ run, onChange, onRemove }: FormProps) {
  const { t } = useTranslation();
  const usual = { value: "", label: t("simulate.asItIs") };
  return (
    <section className="panel" aria-label={run.name}>
      <div className="form tight">
        <TextField label={t("job.name")} value={run.name} onChange={(name) => onChange({ ...run, name })} />
        <Select
          label={t("simulate.policy")}
          value={run.policy ?? ""}
          onChange={(value) => onChange({ ...run, policy: POLICIES.find((policy) => policy === value) })}
          options={[usual, ...POLICIES.map((value) => ({ value, label: t(`policy.${value}`) }))]}
        />
        <Select
          label={t("simulate.lending")}
          value={run.lending === undefined || run.lending === null ? "" : String(run.lending)}
          onChange={(value) => onChange({ ...run, lending: value === "" ? undefined : value === "true" })}
          options={[
            usual,
            { value: "true", label: t("common.yes") },
            { value: "false", label: t("common.no") },
          ]}
        />
        <TextField
          label={t("simulate.nodes")}
          value={run.nodes ?? ""}
          onChange={(nodes) => onChange({ ...run, nodes: nodes || undefined })}
          placeholder="+2x8:ascend:910B3"
        />
        {onRemove ? (
          <div className="field" style={{ justifyContent: "flex-end" }}>
            <Button onClick={onRemove}>{t("admin.remove")}</Button>
          </div>
        ) : null}
      </div>
    </section>
  );
}
