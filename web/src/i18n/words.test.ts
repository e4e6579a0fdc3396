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

test("Chinese and Latin letters are separated by a space, and punctuation is full-width", () => {
  const wrong = flat(zh).filter(
    ([, text]) =>
      /[\u4e00-\u9fff][A-Za-z0-9{`]|[A-Za-z0-9}`][\u4e00-\u9fff]/.test(text) ||
      /[\u4e00-\u9fff] ?[,.;:!?()]|[,.;:!?()] ?[\u4e00-\u9fff]/.test(text.replace("卡.芯片", "")),
  );
  expect(wrong).toEqual([]);
});

test("Chinese uses one word for each concept of the glossary", () => {
  const replaced = /工作进程|处理器|批准|额度|腾空|承诺|(?<!MFA )设备|(?<!访问)令牌|这里|怎样|谁|它/;
  expect(flat(zh).filter(([, text]) => replaced.test(text))).toEqual([]);
});

test("English addresses people plainly", () => {
  const riddles =
    /\b(somebody|anybody|whoever|whatever|nobody|for ever|any more|so long|that would do|authenticator(?! app)|processors?|going by|make room|promised|let in)\b/i;
  expect(flat(en).filter(([, text]) => riddles.test(text))).toEqual([]);
});
