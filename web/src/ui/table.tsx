/** Lists. Long ones keep only the rows in sight in the document; rows have one height, so nothing jumps. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

export type Column<Row> = {
  key: string;
  title: ReactNode;
  /** The share of the width, or pixels. */
  width?: number | string;
  end?: boolean;
  wrap?: boolean;
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

export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, rowKey, empty, total, onEnd, narrow } = props;
  const box = useRef<HTMLDivElement>(null);
  const isVirtual = rows.length > ALL_AT_ONCE;
  const virtual = useVirtualizer({
    count: isVirtual ? rows.length : 0,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? -1;
  const shown = isVirtual ? rows.slice(first, last + 1) : rows;
  const above = isVirtual ? first * ROW : 0;
  const below = isVirtual ? (rows.length - 1 - last) * ROW : 0;
  useEffect(() => {
    if (isVirtual && last >= rows.length - 30) onEnd?.();
  }, [isVirtual, last, rows.length, onEnd]);

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="table-box" ref={box} tabIndex={0} aria-label={label}>
      <table
        className={narrow ? "list narrow" : "list"}
        aria-label={label}
        aria-rowcount={(total ?? rows.length) + 1}
      >
        <colgroup>
          {columns.map((column) => (
            <col key={column.key} style={column.width ? { width: column.width } : undefined} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={column.end ? "end" : undefined}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 ? <Spacer height={above} columns={columns.length} /> : null}
          {shown.map((row, index) => (
            <tr key={rowKey(row)} aria-rowindex={first + index + 2}>
              {columns.map((column) => (
                <td key={column.key} className={cellClass(column)}>
                  {column.render(row)}
                </td>
              ))}
            </tr>
          ))}
          {below > 0 ? <Spacer height={below} columns={columns.length} /> : null}
        </tbody>
      </table>
      {rows.length === 0 ? <div className="note">{empty}</div> : null}
    </section>
  );
}

function cellClass<Row>(column: Column<Row>): string | undefined {
  const words = [column.end ? "end" : "", column.wrap ? "wrap" : ""].filter(Boolean);
  return words.length > 0 ? words.join(" ") : undefined;
}

function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    <tr className="spacer">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}
