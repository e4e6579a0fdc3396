/** What people press and fill in. Pages use these and never antd itself. */
import { Button as AntButton, Switch as AntSwitch, Input, InputNumber, Modal, Tooltip } from "antd";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";

type ButtonProps = {
  children: ReactNode;
  onClick?: () => unknown;
  kind?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  submit?: boolean;
  busy?: boolean;
  /** Why this cannot be done now. The button stays reachable, so that everybody can read why. */
  blocked?: string | undefined | false;
  label?: string;
};

export function Button({
  children,
  onClick,
  kind = "plain",
  small,
  submit,
  busy,
  blocked,
  label,
}: ButtonProps) {
  const isBlocked = Boolean(blocked);
  const button = (
    <AntButton
      type={kind === "primary" ? "primary" : kind === "quiet" ? "text" : "default"}
      danger={kind === "danger"}
      size={small ? "small" : "middle"}
      htmlType={submit ? "submit" : "button"}
      loading={busy}
      aria-label={label}
      aria-disabled={isBlocked || undefined}
      style={isBlocked ? { opacity: 0.55, cursor: "not-allowed" } : undefined}
      onClick={(event) => {
        if (isBlocked) event.preventDefault();
        else onClick?.();
      }}
    >
      {children}
    </AntButton>
  );
  return isBlocked ? <Tooltip title={blocked}>{button}</Tooltip> : button;
}

type FieldProps = { label: string; error?: string | undefined; hint?: string; wide?: boolean };

/** A label, a control that it belongs to, and what is wrong with its value. */
function Field({ label, error, hint, wide, children }: FieldProps & { children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className={wide ? "field wide" : "field"}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {error ? (
        <span className="error" role="alert">
          {error}
        </span>
      ) : hint ? (
        <span className="muted">{hint}</span>
      ) : null}
    </div>
  );
}

type TextProps = FieldProps & {
  value: string;
  onChange: (value: string) => void;
  lines?: number;
  secret?: boolean;
  mono?: boolean;
  placeholder?: string;
  autoComplete?: string;
  autoFocus?: boolean;
};

export function TextField(props: TextProps) {
  const { value, onChange, lines, secret, mono, placeholder, autoComplete, autoFocus } = props;
  const common = {
    value,
    placeholder,
    autoComplete,
    autoFocus,
    spellCheck: false,
    className: mono ? "mono" : undefined,
    status: props.error ? ("error" as const) : undefined,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  return (
    <Field {...props}>
      {(id) =>
        lines ? (
          <Input.TextArea id={id} {...common} autoSize={{ minRows: lines, maxRows: Math.max(lines, 16) }} />
        ) : secret ? (
          <Input.Password id={id} {...common} />
        ) : (
          <Input id={id} {...common} />
        )
      }
    </Field>
  );
}

type NumberProps = FieldProps & {
  value: number;
  onChange: (value: number) => void;
  min?: number;
  max?: number;
  step?: number;
};

export function NumberField(props: NumberProps) {
  const { value, onChange, min, max, step } = props;
  return (
    <Field {...props}>
      {(id) => (
        <InputNumber
          id={id}
          value={value}
          min={min}
          max={max}
          step={step ?? 1}
          style={{ width: "100%" }}
          onChange={(next) => onChange(next ?? min ?? 0)}
        />
      )}
    </Field>
  );
}

type Choice = { value: string; label: string };
type SelectProps = { value: string; onChange: (value: string) => void; options: Choice[] };

/** The browser's own: it works with a keyboard, a screen reader and a phone without our help. */
export function Select({ value, onChange, options, ...field }: FieldProps & SelectProps) {
  return (
    <Field {...field}>
      {(id) => (
        <select id={id} className="select" value={value} onChange={(event) => onChange(event.target.value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A select in a row of tools, whose label is only heard. */
export function SmallSelect({ label, value, onChange, options }: SelectProps & { label: string }) {
  return (
    <select
      className="select small"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

export function SearchField(props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  onEnter?: () => void;
}) {
  const { label, value, onChange, onEnter } = props;
  return (
    <Input
      type="search"
      size="small"
      allowClear
      aria-label={label}
      placeholder={label}
      value={value}
      style={{ width: 190 }}
      onChange={(event) => onChange(event.target.value)}
      onPressEnter={onEnter}
    />
  );
}

/** The browser's own choice of files, or of a folder with everything in it. */
export function FileField(props: {
  label: string;
  accept?: string;
  isFolder?: boolean;
  onFiles: (files: File[]) => unknown;
}) {
  const { label, accept, isFolder, onFiles } = props;
  return (
    <label className="file-field">
      {label}
      <input
        type="file"
        className="visually-hidden"
        accept={accept}
        multiple={isFolder}
        {...(isFolder ? { webkitdirectory: "" } : {})}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          // The same may be chosen again, after it has changed.
          event.target.value = "";
        }}
      />
    </label>
  );
}

export function Switch({
  label,
  checked,
  onChange,
}: {
  label: string;
  checked: boolean;
  onChange: (on: boolean) => void;
}) {
  const id = useId();
  return (
    <span className="row" style={{ gap: 6 }}>
      <AntSwitch size="small" checked={checked} onChange={onChange} aria-labelledby={id} />
      <span id={id}>{label}</span>
    </span>
  );
}

/** Asks for something in the middle of a change. Enter confirms. */
export function Dialog(props: {
  title: string;
  action: string;
  blocked?: string | undefined | false;
  onConfirm: () => void;
  onCancel: () => void;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const { title, action, blocked, onConfirm, onCancel, children } = props;
  return (
    <Modal open title={title} footer={null} onCancel={onCancel} destroyOnHidden>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!blocked) onConfirm();
        }}
      >
        {children}
        <div className="row">
          <Button submit kind="primary" blocked={blocked}>
            {action}
          </Button>
          <Button onClick={onCancel}>{t("common.cancel")}</Button>
        </div>
      </form>
    </Modal>
  );
}

type ConfirmProps = Omit<ButtonProps, "onClick"> & {
  title: string;
  text: ReactNode;
  action: string;
  onConfirm: () => Promise<unknown>;
};

/** A button that asks once more. */
export function Confirm({ title, text, action, onConfirm, ...button }: ConfirmProps) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const confirm = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await onConfirm();
      setOpen(false);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)} />
      <Modal
        open={open}
        title={title}
        okText={action}
        cancelText={t("common.cancel")}
        okButtonProps={{ danger: button.kind === "danger" }}
        confirmLoading={busy}
        onOk={confirm}
        onCancel={() => setOpen(false)}
        destroyOnHidden
      >
        {text}
        {failure ? (
          <p role="alert" style={{ color: "var(--failed)" }}>
            {failure}
          </p>
        ) : null}
      </Modal>
    </>
  );
}
