import { expect, test } from "vitest";
import { Refusal } from "./client";
import { type AskForProof, missingPart, type Proof, ProofDeclined, proven } from "./proof";

const refused = (field: string) =>
  new Refusal(422, { code: "invalid_fields", detail: field, errors: [{ field, message: "is needed" }] });

/** A server that wants this proof, and remembers what it was shown. */
function server(wanted: Proof) {
  const seen: (Proof | undefined)[] = [];
  const send = async (proof?: Proof) => {
    seen.push(proof);
    if (wanted.password && proof?.password !== wanted.password) throw refused("proof.password");
    if (wanted.code && proof?.code !== wanted.code) throw refused("proof.code");
    return "made";
  };
  return { seen, send };
}

const unasked: AskForProof = async () => {
  throw new Error("nothing is to be asked for");
};

test("what needs no proof asks for none", async () => {
  const { seen, send } = server({});
  expect(await proven(send, unasked)).toBe("made");
  expect(seen).toEqual([undefined]);
});

test("a password is asked for, and again with the refusal of a wrong one", async () => {
  const { seen, send } = server({ password: "right" });
  const answers = ["wrong", "right"];
  const asked: [string, string | undefined][] = [];
  const ask: AskForProof = async (field, refusal) => {
    asked.push([field, refusal?.message]);
    return { password: answers.shift() ?? "" };
  };
  expect(await proven(send, ask)).toBe("made");
  expect(asked).toEqual([
    ["password", undefined],
    ["password", "proof.password"],
  ]);
  expect(seen).toEqual([undefined, { password: "wrong" }, { password: "right" }]);
});

test("a code is asked for beside the password that was right", async () => {
  const { seen, send } = server({ password: "right", code: "123456" });
  const ask: AskForProof = async (field) =>
    field === "password" ? { password: "right" } : { code: "123456" };
  expect(await proven(send, ask)).toBe("made");
  expect(seen.at(-1)).toEqual({ password: "right", code: "123456" });
});

test("another refusal is passed on, and so is giving up", async () => {
  const full = new Refusal(409, { code: "wrong_state", detail: "there are 100 tokens already" });
  await expect(proven(() => Promise.reject(full), unasked)).rejects.toBe(full);
  const { send } = server({ password: "right" });
  await expect(proven(send, async () => undefined)).rejects.toBeInstanceOf(ProofDeclined);
  expect(missingPart(refused("name"))).toBeUndefined();
  expect(missingPart(new Error("x"))).toBeUndefined();
});
