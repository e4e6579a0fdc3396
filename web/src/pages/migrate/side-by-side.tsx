/** Changes of a file, the old text beside the new one. Signs tell them apart as well as colours. */
import { Fragment, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { commonEnds, type DiffRow, type Side, stretches } from "./diff";

type Note = { line: number; rule: string; message: string; grade: "safe" | "likely" };

export function SideBySide({ before, after, notes }: { before: string; after: string; notes: Note[] }) {
  const { t } = useTranslation();
  const parts = useMemo(() => stretches(before, after), [before, after]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="table-box" tabIndex={0} aria-label={t("migrate.diff")}>
      <table className="diff">
        <colgroup>
          <col style={{ width: 46 }} />
          <col />
          <col style={{ width: 46 }} />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th colSpan={2} scope="colgroup" className="head">
              {t("migrate.before")}
            </th>
            <th colSpan={2} scope="colgroup" className="head">
              {t("migrate.after")}
            </th>
          </tr>
        </thead>
        <tbody>
          {parts.map((rows, index) => (
            <Fragment key={rows[0]?.left?.number ?? `+${rows[0]?.right?.number}`}>
              {index > 0 ? (
                <tr>
                  <td colSpan={4} className="half gap">
                    ⋯
                  </td>
                </tr>
              ) : null}
              {rows.map((row) => (
                <Row key={`${row.left?.number}.${row.right?.number}`} row={row} notes={notes} />
              ))}
            </Fragment>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ row, notes }: { row: DiffRow; notes: Note[] }) {
  const { left, right, isSame } = row;
  const why = isSame ? [] : notes.filter((note) => note.line === left?.number);
  const ends = left && right && !isSame ? commonEnds(left.text, right.text) : undefined;
  return (
    <tr title={why.map((note) => `${note.rule}: ${note.message}`).join("\n") || undefined}>
      <Half side={left} sign={isSame ? "" : "−"} kind={isSame ? "same" : "removed"} ends={ends} />
      <Half side={right} sign={isSame ? "" : "+"} kind={isSame ? "same" : "added"} ends={ends} />
    </tr>
  );
}

type HalfProps = {
  side: Side | undefined;
  sign: string;
  kind: "same" | "removed" | "added";
  ends: { start: number; end: number } | undefined;
};

function Half({ side, sign, kind, ends }: HalfProps) {
  if (!side) return <td colSpan={2} className="half nothing" />;
  const { text, number } = side;
  return (
    <>
      <td className="half place number">
        {number} {sign}
      </td>
      <td className={`half ${kind}`}>
        {ends ? (
          <>
            {text.slice(0, ends.start)}
            <mark>{text.slice(ends.start, text.length - ends.end)}</mark>
            {text.slice(text.length - ends.end)}
          </>
        ) : (
          text
        )}
      </td>
    </>
  );
}
