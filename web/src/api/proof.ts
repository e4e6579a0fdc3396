/** What is shown beside a session before it makes what does not end with it: asked for when the server says so. */
import { createContext } from "react";
import { Refusal } from "./client";
import type { components } from "./schema";

export type Proof = components["schemas"]["Proof"];
export type ProofField = "password" | "code";

/** Asks the person at the browser; the refusal is of what they gave before. Nothing comes back where they gave up. */
export type AskForProof = (field: ProofField, refusal: Refusal | undefined) => Promise<Proof | undefined>;

/** They closed the dialog, and know it. */
export class ProofDeclined extends Error {}

export const ProofContext = createContext<AskForProof>(async () => undefined);

/** Which part of a proof the server misses, if that is why it refused. */
export function missingPart(error: unknown): ProofField | undefined {
  const fields = error instanceof Refusal ? error.fields.map(({ field }) => field) : [];
  if (fields.includes("proof.password")) return "password";
  return fields.includes("proof.code") ? "code" : undefined;
}

/** Sends a change, and again with what the server asks for, until it takes it or has another reason not to. */
export async function proven<Out>(send: (proof?: Proof) => Promise<Out>, ask: AskForProof): Promise<Out> {
  let proof: Proof | undefined;
  for (;;) {
    try {
      return await send(proof);
    } catch (error) {
      const field = missingPart(error);
      if (!field) throw error;
      const isAgain = Boolean(proof?.[field]);
      const shown = await ask(field, isAgain ? (error as Refusal) : undefined);
      if (!shown) throw new ProofDeclined();
      proof = { ...proof, ...shown };
    }
  }
}
