/** What a migration did: figures, reports, and each file with its findings and changes. */
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import type { MigratedFile, MigrationView } from "../../api/client";
import { useAddress } from "../../app/address";
import { paths } from "../../app/paths";
import { Button } from "../../ui/controls";
import { Table } from "../../ui/table";
import { SideBySide } from "./side-by-side";

/** What breaks a program first. */
const SEVERITIES = [
  "broken",
  "unsupported",
  "needs_person",
  "unknown",
  "precision",
  "performance",
  "note",
] as const;

type Props = { name: string; from: string; result: MigrationView };

export function Outcome({ name, from, result }: Props) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { summary, files, reports } = result;
  const { query, with: withQuery } = useAddress();
  const file = files.find(({ path }) => path === query.get("file")) ?? files[0];
  return (
    <section className="stack" aria-label={t("migrate.outcome")}>
      <div className="row spread">
        <h2>{t("migrate.outcome")}</h2>
        <Button kind="primary" onClick={() => navigate(paths.submitMigrated(result.code, from, name))}>
          {t("migrate.submit")}
        </Button>
      </div>
      <div className="stats">
        <Stat title={t("migrate.changedFiles")}>
          {summary.changed_files} / {summary.files}
        </Stat>
        <Stat title={t("migrate.safe")}>{summary.edits.safe}</Stat>
        <Stat title={t("migrate.likely")}>{summary.edits.likely}</Stat>
        {SEVERITIES.filter((severity) => summary.findings[severity] > 0).map((severity) => (
          <Stat key={severity} title={t(`migrate.severity.${severity}`)}>
            {summary.findings[severity]}
          </Stat>
        ))}
      </div>
      <div className="row">
        <span className="muted">{t("migrate.reports")}</span>
        {reports.map((report) => (
          <a key={report} href={paths.migrationReport(result.code, report)} download={report}>
            {report}
          </a>
        ))}
      </div>
      {result.truncated ? (
        <div className="banner" role="status">
          <p>{t("migrate.truncated")}</p>
        </div>
      ) : null}
      {file ? (
        <div className="migrated">
          <nav className="panel" aria-label={t("migrate.files")}>
            {files.map((each) => (
              <Link
                key={each.path}
                to={withQuery({ file: each.path })}
                className="migrated-file"
                aria-current={each === file ? "page" : undefined}
              >
                <span className="mono">{each.path}</span>
                <span className="muted number">{countsOf(t, each)}</span>
              </Link>
            ))}
          </nav>
          <File file={file} />
        </div>
      ) : (
        <div className="note">{t("migrate.clean")}</div>
      )}
    </section>
  );
}

type Translate = TFunction;

function countsOf(t: Translate, file: MigratedFile): string {
  const parts = [
    file.status === "broken" ? t("migrate.severity.broken") : "",
    file.changes.length > 0 ? t("migrate.changeCount", { count: file.changes.length }) : "",
    file.findings.length > 0 ? t("migrate.findingCount", { count: file.findings.length }) : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

function Stat({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div className="stat">
      <b>{children}</b>
      <span className="muted">{title}</span>
    </div>
  );
}

function File({ file }: { file: MigratedFile }) {
  const { t } = useTranslation();
  const findings = [...file.findings].sort(
    (one, other) =>
      SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity) || one.line - other.line,
  );
  return (
    <section className="stack" aria-label={file.path} style={{ minWidth: 0 }}>
      <h3 className="mono">{file.path}</h3>
      {findings.length > 0 ? (
        <Table
          label={t("migrate.findings")}
          narrow
          rows={findings}
          rowKey={(finding) => `${finding.rule}.${finding.line}.${finding.column}.${finding.subject}`}
          empty=""
          columns={[
            {
              key: "line",
              title: t("migrate.line"),
              width: 60,
              end: true,
              render: (finding) => finding.line,
            },
            {
              key: "severity",
              title: t("migrate.kind"),
              width: 150,
              render: (finding) => t(`migrate.severity.${finding.severity}`),
            },
            { key: "message", title: t("events.message"), wrap: true, render: (finding) => finding.message },
            {
              key: "rule",
              title: t("migrate.rule"),
              width: 170,
              render: (finding) => <code title={finding.rule}>{finding.rule}</code>,
            },
          ]}
        />
      ) : null}
      {file.before !== undefined &&
      file.before !== null &&
      file.after !== undefined &&
      file.after !== null ? (
        <SideBySide before={file.before} after={file.after} notes={file.changes} />
      ) : null}
    </section>
  );
}
