/** Things that people add and remove: a form for a new one, what is shown of it once, the list, a button to remove each. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Answer, type Asked, Failure } from "./answer";
import { Copy } from "./command";
import { Button, Confirm } from "./controls";
import { type Column, Table } from "./table";

type Add = {
  action: string;
  fields?: ReactNode;
  /** Why nothing can be added now. */
  blocked?: string | undefined | false;
  error: unknown;
  busy?: boolean;
  onAdd: () => unknown;
};

type Remove<Row> = {
  action: string;
  blocked?: string | undefined | false;
  title: (row: Row) => string;
  text: string;
  onRemove: (row: Row) => Promise<unknown>;
};

type Props<Row> = {
  title: string;
  add?: Add | undefined;
  /** What is shown of the one just made, and never again. */
  made?: ReactNode;
  list: Asked<{ items: Row[] }>;
  columns: Column<Row>[];
  rowKey: (row: Row) => string;
  empty: string;
  remove: Remove<Row>;
  narrow?: boolean;
};

export function Collection<Row>({
  title,
  add,
  made,
  list,
  columns,
  rowKey,
  empty,
  remove,
  narrow,
}: Props<Row>) {
  return (
    <section className="stack" style={{ gap: 8 }} aria-label={title}>
      <h2>{title}</h2>
      {add ? <NewOne {...add} /> : null}
      {made}
      <Answer of={list}>
        {({ items }) => (
          <Table
            label={title}
            narrow={narrow}
            rows={items}
            rowKey={rowKey}
            empty={<p>{empty}</p>}
            columns={[...columns, removal(remove)]}
          />
        )}
      </Answer>
    </section>
  );
}

function NewOne({ action, fields, blocked, error, busy, onAdd }: Add) {
  return (
    <form
      className={fields ? "panel stack" : "stack"}
      onSubmit={(event) => {
        event.preventDefault();
        onAdd();
      }}
    >
      {fields ? <div className="form">{fields}</div> : null}
      {error ? <Failure error={error} /> : null}
      <div>
        <Button submit blocked={blocked} busy={busy}>
          {action}
        </Button>
      </div>
    </form>
  );
}

function removal<Row>({ action, blocked, title, text, onRemove }: Remove<Row>): Column<Row> {
  return {
    key: "remove",
    title: <span className="visually-hidden">{action}</span>,
    width: 110,
    render: (row) => (
      <Confirm
        small
        kind="danger"
        blocked={blocked}
        title={title(row)}
        text={text}
        action={action}
        onConfirm={() => onRemove(row)}
      >
        {action}
      </Confirm>
    ),
  };
}

/** A secret that is shown this once. */
export function Once({
  note,
  secret,
  copied,
  copy,
}: {
  note?: string;
  secret: string;
  copied?: string;
  copy: string;
}) {
  const { t } = useTranslation();
  return (
    <div className="banner good" role="status">
      <div>
        <p>{note ?? t("profile.secretOnce")}</p>
        <code style={{ overflowWrap: "anywhere" }}>{secret}</code>
      </div>
      <Copy text={copied ?? secret} label={copy} />
    </div>
  );
}
