/** The fields of a job that most people set; the job file beside it has them all. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { devices as devicesQuery } from "../../api/queries";
import { deviceName, kindName } from "../../format/amounts";
import { NumberField, Select, TextField } from "../../ui/controls";
import { type Draft, withField } from "./draft";

type Props = { draft: Draft; onChange: (draft: Draft) => void; errors: { field: string; message: string }[] };

const FRAMEWORKS = ["none", "pytorch", "tensorflow", "mindspore", "mpi"];

export function SpecForm({ draft, onChange, errors }: Props) {
  const { t } = useTranslation();
  const set = (field: string) => (value: unknown) => onChange(withField(draft, field, value));
  const error = (field: string) => {
    const found = errors.find((one) => one.field === field || one.field.startsWith(`${field}.`));
    return found ? `${found.message}` : undefined;
  };
  const text = (field: string) => String(draft[field] ?? "");
  const { devices } = draft;
  const chosen = devices?.count ? [devices.kind ?? "", devices.model ?? ""].join("/") : "none";
  const choose = (value: string) => {
    if (value === "none") return onChange(withField(draft, "devices", undefined));
    const [kind = "", model = ""] = value.split("/");
    onChange(
      withField(draft, "devices", {
        count: devices?.count || 1,
        ...(kind ? { kind } : {}),
        ...(model ? { model } : {}),
      }),
    );
  };
  return (
    <div className="form">
      <TextField label={t("job.name")} value={text("name")} onChange={set("name")} error={error("name")} />
      <TextField
        label={t("job.workspace")}
        value={text("workspace")}
        onChange={set("workspace")}
        error={error("workspace")}
      />
      <TextField
        wide
        label={t("job.command")}
        value={text("command")}
        onChange={set("command")}
        lines={3}
        mono
        error={error("command")}
      />
      <Select
        label={t("spec.framework")}
        value={text("framework") || "none"}
        onChange={(value) => set("framework")(value === "none" ? undefined : value)}
        options={FRAMEWORKS.map((value) => ({ value, label: value }))}
      />
      <DeviceChoice value={chosen} onChange={choose} error={error("devices")} />
      <NumberField
        label={t("spec.count")}
        value={devices?.count ?? 0}
        min={0}
        onChange={(count) => set("devices")(count === 0 ? undefined : { ...devices, count })}
        error={error("devices.count")}
      />
      <NumberField
        label={t("spec.workers")}
        value={draft.workers ?? 1}
        min={1}
        onChange={(count) => set("workers")(count === 1 ? undefined : count)}
        error={error("workers")}
      />
      <TextField
        label={t("spec.cpus")}
        value={text("cpus")}
        onChange={set("cpus")}
        placeholder="1"
        error={error("cpus")}
      />
      <TextField
        label={t("spec.memory")}
        value={text("memory")}
        onChange={set("memory")}
        placeholder="64Gi"
        error={error("memory")}
      />
      <NumberField
        label={t("spec.priority")}
        value={draft.priority ?? 5}
        min={1}
        max={9}
        onChange={(value) => set("priority")(value === 5 ? undefined : value)}
        error={error("priority")}
      />
      <TextField
        label={t("spec.maxTime")}
        value={text("max_time")}
        onChange={set("max_time")}
        placeholder="24h"
        error={error("max_time")}
      />
      <TextField
        label={t("spec.image")}
        value={text("image")}
        onChange={set("image")}
        placeholder="host"
        error={error("image")}
      />
      <TextField
        label={t("spec.workingDirectory")}
        value={text("working_directory")}
        onChange={set("working_directory")}
        error={error("working_directory")}
      />
    </div>
  );
}

/** What there is here, so that nobody has to know names of models. */
function DeviceChoice({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (value: string) => void;
  error?: string | undefined;
}) {
  const { t } = useTranslation();
  const all = useQuery(devicesQuery).data?.items ?? [];
  const kinds = [...new Set(all.map((device) => device.kind))];
  const models = [...new Set(all.map((device) => `${device.kind}/${device.model}`))];
  const known = ["none", "/", ...kinds.map((kind) => `${kind}/`), ...models];
  const label = (choice: string) => {
    if (choice === "none") return t("spec.noDevices");
    if (choice === "/") return t("spec.anyDevice");
    const [kind, model] = choice.split("/");
    return model ? deviceName(kind, model) : `${kindName(kind)} ${t("spec.anyModel")}`;
  };
  const options = known.includes(value) ? known : [...known, value];
  return (
    <Select
      label={t("job.devices")}
      value={value}
      onChange={onChange}
      error={error}
      options={options.map((choice) => ({ value: choice, label: label(choice) }))}
    />
  );
}
