/**
 * A project as the archive that the server takes: tar inside zstd. Browsers have no zstd, but a frame of it may hold
 * its content as it is, so ours does. Pure.
 */
export type ProjectFile = { path: string; bytes: Uint8Array<ArrayBuffer> };

const RECORD = 512;
const LONGEST_NAME = 100;
const text = new TextEncoder();

const padded = (size: number): number => Math.ceil(size / RECORD) * RECORD;

/** A script keeps being one: browsers do not tell who may execute a file. */
const modeOf = (bytes: Uint8Array): number => (bytes[0] === 0x23 && bytes[1] === 0x21 ? 0o755 : 0o644);

function header(name: Uint8Array, size: number, mode: number, kind: "0" | "L"): Uint8Array {
  const record = new Uint8Array(RECORD);
  const write = (at: number, value: string) => record.set(text.encode(value), at);
  const octal = (value: number, width: number) => value.toString(8).padStart(width, "0");
  record.set(name.subarray(0, LONGEST_NAME));
  write(100, `${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`);
  write(124, `${octal(size, 11)}\0${octal(0, 11)}\0`);
  write(148, "        ");
  write(156, kind);
  write(257, "ustar\u000000");
  const sum = record.reduce((total, byte) => total + byte, 0);
  write(148, `${octal(sum, 6)}\0 `);
  return record;
}

/** Files in the order of their paths, so that the same project is the same archive. */
export function tar(files: ProjectFile[]): Uint8Array<ArrayBuffer> {
  const parts: { bytes: Uint8Array; room: number }[] = [];
  const add = (bytes: Uint8Array) => parts.push({ bytes, room: padded(bytes.length) });
  for (const { path, bytes } of [...files].sort((one, other) => (one.path < other.path ? -1 : 1))) {
    const name = text.encode(path);
    if (name.length > LONGEST_NAME) {
      // GNU's way: the name is the content of an entry before.
      const whole = new Uint8Array(name.length + 1);
      whole.set(name);
      add(header(text.encode("././@LongLink"), whole.length, 0o644, "L"));
      add(whole);
    }
    add(header(name, bytes.length, modeOf(bytes), "0"));
    add(bytes);
  }
  const archive = new Uint8Array(parts.reduce((sum, part) => sum + part.room, 2 * RECORD));
  let at = 0;
  for (const { bytes, room } of parts) {
    archive.set(bytes, at);
    at += room;
  }
  return archive;
}

/** RFC 8878: the magic number, no flags, and a window of 128 KiB, which is also the most that a block may hold. */
const FRAME = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
const BLOCK = 128 << 10;

/** A zstd frame of raw blocks. */
export function stored(content: Uint8Array): Uint8Array<ArrayBuffer> {
  const blocks = Math.max(1, Math.ceil(content.length / BLOCK));
  const frame = new Uint8Array(FRAME.length + 3 * blocks + content.length);
  frame.set(FRAME);
  let at = FRAME.length;
  for (let block = 0; block < blocks; block += 1) {
    const bytes = content.subarray(block * BLOCK, (block + 1) * BLOCK);
    const head = (bytes.length << 3) | (block === blocks - 1 ? 1 : 0);
    frame.set([head & 0xff, (head >> 8) & 0xff, head >> 16], at);
    frame.set(bytes, at + 3);
    at += 3 + bytes.length;
  }
  return frame;
}
