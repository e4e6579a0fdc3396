/**
 * The part of a log that is held: consecutive lines, and cursors for going on at both ends. Lines come at either end and
 * leave at the other, so that a log of any length can be walked through. Changes in place; whoever draws is told by `version`.
 */
import type { LogLine, LogLines } from "../api/client";

/** More are not held: 20 pixels each, far below what browsers can lay out. */
export const MOST_LINES = 60_000;

/** A place between lines whose cursor is known. */
type Mark = { index: number; cursor: string | undefined };

export class LogBuffer {
  lines: LogLine[] = [];
  version = 0;
  /** Where to follow from; none when lines at the end were let go, or more wait there. */
  end: string | undefined;
  /** Where a next page begins, when the end is not held. */
  next: string | undefined;
  private marks: Mark[] = [];
  private readonly keeps: (line: LogLine) => boolean;

  /** Lines that are not kept are as if they were not there. */
  constructor(keeps: (line: LogLine) => boolean = () => true) {
    this.keeps = keeps;
  }

  /** Where earlier lines are; none at the beginning. */
  get before(): string | undefined {
    return this.marks[0]?.cursor;
  }

  get isAtEnd(): boolean {
    return this.next === undefined;
  }

  open(page: LogLines) {
    this.lines = page.items.filter(this.keeps);
    this.marks = [{ index: 0, cursor: page.before ?? undefined }];
    this.next = page.next ?? undefined;
    this.end = this.isAtEnd ? page.end : undefined;
    this.version += 1;
  }

  /** Returns how many lines came before those that were there. */
  prepend(page: LogLines): number {
    const earlier = page.items.filter(this.keeps);
    const count = earlier.length;
    this.lines = earlier.concat(this.lines);
    this.marks = [
      { index: 0, cursor: page.before ?? undefined },
      ...this.marks.map((mark) => ({ ...mark, index: mark.index + count })),
    ];
    this.dropEnd();
    this.version += 1;
    return count;
  }

  /** A next page. Returns how many lines were let go at the beginning. */
  append(page: LogLines): number {
    this.marks.push({ index: this.lines.length, cursor: this.next });
    this.lines = this.lines.concat(page.items.filter(this.keeps));
    this.next = page.next ?? undefined;
    this.end = this.isAtEnd ? page.end : undefined;
    return this.dropBeginning();
  }

  /** Lines that a follower gave, and the cursor behind them. Returns how many were let go at the beginning. */
  follow(lines: LogLine[], end: string): number {
    // A follower's cursor begins with the attempt that it began with.
    this.marks.push({ index: this.lines.length, cursor: this.end?.replace(/^\d+!/, "") });
    for (const line of lines) if (this.keeps(line)) this.lines.push(line);
    this.end = end;
    return this.dropBeginning();
  }

  private dropBeginning(): number {
    this.version += 1;
    const excess = this.lines.length - MOST_LINES;
    if (excess <= 0) return 0;
    // Only at a mark is it known how to come back.
    const at = this.marks.findIndex((mark) => mark.index >= excess);
    const mark = this.marks[at];
    if (!mark) return 0;
    this.lines = this.lines.slice(mark.index);
    this.marks = this.marks.slice(at).map((each) => ({ ...each, index: each.index - mark.index }));
    return mark.index;
  }

  private dropEnd() {
    if (this.lines.length <= MOST_LINES) return;
    const mark = this.marks.findLast((each) => each.index <= MOST_LINES && each.index > 0);
    if (!mark?.cursor) return;
    this.lines = this.lines.slice(0, mark.index);
    this.marks = this.marks.filter((each) => each.index < mark.index);
    this.next = mark.cursor;
    this.end = undefined;
  }
}
