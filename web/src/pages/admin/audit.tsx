import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { audit } from "../../api/queries";
import { Answer } from "../../ui/answer";
import { Button, SearchField } from "../../ui/controls";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";

export function Audit() {
  const { t } = useTranslation();
  const [by, setBy] = useState("");
  const [subject, setSubject] = useState("");
  const list = useInfiniteQuery(audit({ by: by || undefined, subject: subject || undefined }));
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  return (
    <>
      <div className="log-tools">
        <SearchField label={t("admin.by")} value={by} onChange={setBy} />
        <SearchField label={t("admin.subject")} value={subject} onChange={setSubject} />
        {list.hasNextPage ? (
          <Button small onClick={() => list.fetchNextPage()}>
            {t("admin.more")}
          </Button>
        ) : null}
      </div>
      <Answer of={list}>
        {() => (
          <Table
            label={t("nav.audit")}
            rows={rows}
            rowKey={(entry) => entry.number}
            empty={<p>{t("admin.noAudit")}</p>}
            columns={[
              { key: "number", title: "#", width: 60, end: true, render: (entry) => entry.number },
              { key: "at", title: t("events.at"), width: 130, render: (entry) => <When at={entry.at} /> },
              { key: "by", title: t("admin.by"), width: 110, render: (entry) => entry.by },
              { key: "from", title: t("admin.from"), width: 120, render: (entry) => entry.from },
              {
                key: "action",
                title: t("admin.action"),
                width: 170,
                render: (entry) => <code>{entry.action}</code>,
              },
              { key: "subject", title: t("admin.subject"), width: 150, render: (entry) => entry.subject },
              {
                key: "change",
                title: t("admin.change"),
                render: (entry) => {
                  const text = [entry.before, entry.after]
                    .map((value) => (value === undefined || value === null ? "" : JSON.stringify(value)))
                    .filter(Boolean)
                    .join(" → ");
                  return (
                    <code title={text} className="muted">
                      {text}
                    </code>
                  );
                },
              },
            ]}
          />
        )}
      </Answer>
    </>
  );
}
