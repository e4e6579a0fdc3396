/** Colours that programs print. Only those of the terminal's palette, in the console's own tones; the rest is left out. */
export type Span = { text: string; tone?: string; bold?: boolean };

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what this is about
const ESCAPE = /\u001b(?:\[([0-9;:]*)([A-Za-z])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9]|[=>])/g;

/** By the palette's numbers: black, red, green, yellow, blue, magenta, cyan, white. */
const TONES = [
  "var(--muted)",
  "var(--failed)",
  "var(--succeeded)",
  "var(--queued)",
  "var(--running)",
  "var(--stopping)",
  "var(--starting)",
  undefined,
];

/** What a terminal would show at the end: a carriage return begins the line anew. */
function overwritten(text: string): string {
  const trimmed = text.endsWith("\r") ? text.slice(0, -1) : text;
  return trimmed.slice(trimmed.lastIndexOf("\r") + 1);
}

export function spans(line: string): Span[] {
  const text = overwritten(line);
  if (!text.includes("\u001b")) return [{ text }];
  const result: Span[] = [];
  let style: Omit<Span, "text"> = {};
  let from = 0;
  for (const match of text.matchAll(ESCAPE)) {
    if (match.index > from) result.push({ text: text.slice(from, match.index), ...style });
    if (match[2] === "m") style = styled(style, (match[1] ?? "").split(/[;:]/).map(Number));
    from = match.index + match[0].length;
  }
  if (from < text.length) result.push({ text: text.slice(from), ...style });
  return result;
}

function styled(before: Omit<Span, "text">, codes: number[]): Omit<Span, "text"> {
  let style = { ...before };
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 22) style.bold = false;
    else if (code >= 30 && code <= 37) style.tone = TONES[code - 30];
    else if (code >= 90 && code <= 97) style.tone = TONES[code - 90];
    else if (code === 39) style.tone = undefined;
    else if (code === 38 || code === 48) {
      // `38;5;n` is a palette's number, `38;2;r;g;b` a colour of its own, which we have no fitting tone for.
      const number = codes[index + 2] ?? 0;
      if (code === 38 && codes[index + 1] === 5 && number < 16) style.tone = TONES[number % 8];
      index += codes[index + 1] === 5 ? 2 : 4;
    }
  }
  return style;
}

/** Whether a program says this to Danlu and not to people. One that Danlu does not understand is for its writer to see. */
export const isReport = (line: string): boolean => /^::danlu (progress|checkpoint|metric)\b/.test(line);

/** Without any escapes. */
export const plain = (line: string): string => overwritten(line).replace(ESCAPE, "");
