/** The frames of a session inside a worker: a byte that says what it is, and what it carries. */
const KIND = { open: 0, stdin: 1, stdout: 2, stderr: 3, resize: 4, exit: 6, error: 7 } as const;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function frame(kind: number, payload: string): Uint8Array<ArrayBuffer> {
  const bytes = encoder.encode(payload);
  const message = new Uint8Array(1 + bytes.length);
  message[0] = kind;
  message.set(bytes, 1);
  return message;
}

type Size = { rows: number; columns: number };

export const openFrame = (terminal: Size) =>
  frame(KIND.open, JSON.stringify({ command: [], terminal, env: [] }));
export const stdinFrame = (text: string) => frame(KIND.stdin, text);
export const resizeFrame = (size: Size) => frame(KIND.resize, JSON.stringify(size));

export type Heard =
  | { type: "output"; bytes: Uint8Array }
  | { type: "exit"; code: number }
  | { type: "error"; text: string };

/** What a message says; nothing for kinds that only we send. */
export function heard(message: ArrayBuffer): Heard | undefined {
  const bytes = new Uint8Array(message);
  const payload = bytes.subarray(1);
  switch (bytes[0]) {
    case KIND.stdout:
    case KIND.stderr:
      return { type: "output", bytes: payload };
    case KIND.exit: {
      const exit = JSON.parse(decoder.decode(payload)) as { code?: number; signal?: number };
      return { type: "exit", code: exit.code ?? 128 + (exit.signal ?? 0) };
    }
    case KIND.error:
      return { type: "error", text: decoder.decode(payload) };
    default:
      return undefined;
  }
}
