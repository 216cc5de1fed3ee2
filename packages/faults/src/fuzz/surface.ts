import type { Grammar } from "./grammar.ts";

/** How an input was answered: accepted, or the code of the error, with the path of the member at fault. */
export interface Outcome {
  readonly code: string;
  readonly path?: string | null;
}

/** A part of the product that reads untrusted bytes. */
export interface Surface {
  readonly name: string;
  /** Its share of all cases, relative to the other surfaces. */
  readonly share: number;
  /** The number of cases from which on no cell of the coverage may be empty. */
  readonly enough: number;
  /** Writes inputs that are nearly valid. */
  readonly grammar: Grammar;
  /** Every code that inputs can lead to. A long run fails if one of them never occurred. */
  readonly codes: readonly string[];
  /** The paths of all members. The report lists those that no error named: some members are dropped when invalid. */
  readonly paths: readonly string[];
  /** Reads one input. Throws if the product did anything but accept or reject it. */
  run(input: Buffer): Outcome | Promise<Outcome>;
}

export const accepted: Outcome = { code: "accepted" };

/** The characters of an error's message. A policy's names every problem of the policy. */
const maxMessage = 50_000;

/** Returns the outcome of an error that the product may answer with. Throws any other. */
export function outcomeOf(error: unknown, allowed: readonly string[]): Outcome {
  if (!(error instanceof Error) || !("code" in error)) throw error;
  const { code, message } = error;
  if (typeof code !== "string" || !allowed.includes(code)) throw error;
  if (message === "" || message.length > maxMessage || !message.isWellFormed())
    throw new Error(`The message of ${code} is empty, too long or not well-formed.`);
  const param = "param" in error ? error.param : null;
  return { code, path: typeof param === "string" ? param.replaceAll(/\[\d+\]/g, "[]") : null };
}

/** Requires a condition of the product. */
export function require(condition: boolean, problem: string): void {
  if (!condition) throw new Error(problem);
}
