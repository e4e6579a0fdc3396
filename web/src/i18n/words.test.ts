import { expect, test } from "vitest";
import { en } from "./en";
import { zh } from "./zh";

type Words = { [name: string]: string | Words };

function flat(words: Words, prefix = ""): [string, string][] {
  return Object.entries(words).flatMap(([name, value]) =>
    typeof value === "string"
      ? [[prefix + name, value] as [string, string]]
      : flat(value, `${prefix}${name}.`),
  );
}

const places = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]).sort();

test("both languages have the same keys", () => {
  const keys = (words: Words) => flat(words).map(([key]) => key);
  expect(keys(zh)).toEqual(keys(en));
});

test("both languages say the same things at the same keys", () => {
  const english = new Map(flat(en));
  for (const [key, text] of flat(zh)) {
    expect(text.trim(), key).not.toBe("");
    expect(places(text), key).toEqual(places(english.get(key) ?? ""));
  }
});
