/** What the server made of a job file: what is wrong and where, and what the job does not have as written. */
import { useTranslation } from "react-i18next";
import type { ParsedJobFile } from "../../api/client";
import { lineOf } from "./imported";

export type ImportedFile = { name: string; text: string; parsed: ParsedJobFile };

export function ImportReport({ file }: { file: ImportedFile }) {
  const { t } = useTranslation();
  const { diagnostics, notes, array } = file.parsed;
  const isRefused = diagnostics.length > 0;
  return (
    <section
      className={`banner ${isRefused ? "bad" : "good"}`}
      role="status"
      aria-label={t("submit.imported")}
    >
      <div className="stack">
        <p>
          {isRefused
            ? t("submit.importRefused", { file: file.name, count: diagnostics.length })
            : t("submit.importTaken", { file: file.name })}
        </p>
        {array && array.length > 1 ? <p>{t("submit.importArray", { count: array.length })}</p> : null}
        {diagnostics.map((diagnostic) => (
          <div key={`${diagnostic.line}:${diagnostic.column}:${diagnostic.field}:${diagnostic.message}`}>
            <p>
              {diagnostic.line === undefined || diagnostic.line === null ? null : (
                <span className="mono muted">
                  {diagnostic.line}:{diagnostic.column ?? 1}{" "}
                </span>
              )}
              {diagnostic.field ? <code>{diagnostic.field} </code> : null}
              {diagnostic.message}
            </p>
            <Excerpt text={file.text} line={diagnostic.line ?? undefined} />
            {diagnostic.help ? <p className="muted">{diagnostic.help}</p> : null}
          </div>
        ))}
        {notes.length > 0 ? <p>{t("submit.importNotes")}</p> : null}
        {notes.map((note) => (
          <p key={`${note.line}:${note.text}`}>
            <span className="mono muted">{note.line} </span>
            {note.text}
          </p>
        ))}
      </div>
    </section>
  );
}

function Excerpt({ text, line }: { text: string; line: number | undefined }) {
  const excerpt = line === undefined ? "" : lineOf(text, line);
  return excerpt ? <pre className="mono">{excerpt}</pre> : null;
}
