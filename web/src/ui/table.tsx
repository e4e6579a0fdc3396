/** Lists. Long ones keep only the rows in sight in the document; rows have one height, so nothing jumps. */
import { memo, type ReactNode, useEffect, useRef } from "react";
import { useSight } from "./sight";

export type Column<Row> = {
  key: string;
  title: ReactNode;
  /** The share of the width, or pixels. */
  width?: number | string;
  end?: boolean;
  wrap?: boolean;
  /** Left out of windows that are narrower, so that those which have to be there keep their room. */
  from?: "middle" | "wide" | "widest" | "huge";
  /** Instead of a width: takes a larger share of narrow windows. */
  share?: "name";
  /** What is in it is never too wide for it. */
  fits?: boolean;
  render: (row: Row) => ReactNode;
};

type TableProps<Row> = {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string | number;
  empty: ReactNode;
  /** How many there are in all, where more can be loaded. */
  total?: number;
  /** Called when the end comes into sight. */
  onEnd?: () => void;
  narrow?: boolean;
};

const ROW = 35;
/** Fewer rows than this are simply all there. */
const ALL_AT_ONCE = 60;
/** More are asked for while this many are still to come: at a page a second nobody sees the end. */
const NEAR_END = 100;

export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, rowKey, empty, total, onEnd, narrow } = props;
  const box = useRef<HTMLDivElement>(null);
  const isLong = rows.length > ALL_AT_ONCE;
  const sight = useSight(box, ROW, rows.length);
  const { first, end } = isLong ? sight : { first: 0, end: rows.length };
  const above = first * ROW;
  const below = (rows.length - end) * ROW;
  useEffect(() => {
    if (isLong && end >= rows.length - NEAR_END) onEnd?.();
  }, [isLong, end, rows.length, onEnd]);

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="table-box" ref={box} tabIndex={0} aria-label={label}>
      <table
        className={classes("list", narrow && "narrow", columns.some((column) => column.from) && "adapts")}
        aria-label={label}
        aria-rowcount={(total ?? rows.length) + 1}
      >
        <colgroup>
          {columns.map((column) => (
            <col
              key={column.key}
              className={classes(
                column.from && `from-${column.from}`,
                column.share && `share-${column.share}`,
              )}
              style={column.width ? { width: column.width } : undefined}
            />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.key}
                scope="col"
                className={classes(column.end && "end", column.from && `from-${column.from}`)}
              >
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 ? <Spacer height={above} columns={columns.length} /> : null}
          {rows.slice(first, end).map((row, index) => (
            <TableRow key={rowKey(row)} row={row} columns={columns} index={first + index + 2} />
          ))}
          {below > 0 ? <Spacer height={below} columns={columns.length} /> : null}
        </tbody>
      </table>
      {rows.length === 0 ? <div className="note">{empty}</div> : null}
    </section>
  );
}

/** Drawn again only when its job changes: scrolling then costs the rows that come into sight, and no others. */
const TableRow = memo(function TableRow<Row>({
  row,
  columns,
  index,
}: {
  row: Row;
  columns: Column<Row>[];
  index: number;
}) {
  return (
    <tr aria-rowindex={index}>
      {columns.map((column) => (
        <td key={column.key} className={cellClass(column)}>
          {column.render(row)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: { row: Row; columns: Column<Row>[]; index: number }) => ReactNode;

function cellClass<Row>(column: Column<Row>): string | undefined {
  return classes(
    column.end && "end",
    column.wrap && "wrap",
    column.fits && "fits",
    column.from && `from-${column.from}`,
  );
}

function classes(...words: (string | false | undefined)[]): string | undefined {
  return words.filter(Boolean).join(" ") || undefined;
}

function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    <tr className="spacer">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}
