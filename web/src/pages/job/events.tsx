import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { JobView } from "../../api/client";
import { jobEvents } from "../../api/queries";
import { Answer } from "../../ui/answer";
import { Table } from "../../ui/table";
import { When } from "../../ui/when";

export function Events({ job }: { job: JobView }) {
  const { t } = useTranslation();
  const events = useQuery(jobEvents(job.id));
  return (
    <Answer of={events}>
      {(page) => (
        <Table
          label={t("job.tab.events")}
          rows={[...page.items].reverse()}
          rowKey={(event) => event.number}
          empty={<p>{t("events.none")}</p>}
          columns={[
            { key: "at", title: t("events.at"), width: 140, render: (event) => <When at={event.at} /> },
            {
              key: "kind",
              title: t("events.kind"),
              width: 150,
              render: (event) => (
                <span title={event.kind}>
                  {t(`event.${event.kind}` as "event.job_ended", { defaultValue: event.kind })}
                </span>
              ),
            },
            { key: "actor", title: t("events.actor"), width: 120, render: (event) => event.actor },
            {
              key: "message",
              title: t("events.message"),
              render: (event) => <span title={event.message}>{event.message}</span>,
            },
          ]}
        />
      )}
    </Answer>
  );
}
