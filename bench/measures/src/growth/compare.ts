import type { Store } from "@tollgate/core/store";
import type { Size } from "./history.ts";
import type { Question } from "./questions.ts";

/** A store and the size of its history. */
export interface Filled {
  readonly store: Store;
  readonly size: Size;
}

/** The median times of a question on a short and a long history, in milliseconds. */
export interface Comparison {
  readonly name: string;
  readonly few: number;
  readonly many: number;
}

/** A question is not repeated after this time in total. Milliseconds. */
const maxMs = 10_000;

/** Asks two stores in turn, so other work on the machine affects both. */
export async function compare(
  question: Question,
  few: Filled,
  many: Filled,
  rounds: number,
): Promise<Comparison> {
  const times: { readonly few: number[]; readonly many: number[] } = { few: [], many: [] };
  const warming = Math.min(3, rounds);
  const started = performance.now();
  for (let round = 0; round < rounds + warming; round++) {
    if (times.many.length > 0 && performance.now() - started > maxMs) break;
    const inFew = await timed(question, few, round);
    const inMany = await timed(question, many, round);
    if (round < warming) continue;
    times.few.push(inFew);
    times.many.push(inMany);
  }
  return { name: question.name, few: median(times.few), many: median(times.many) };
}

async function timed(question: Question, { store, size }: Filled, round: number): Promise<number> {
  const started = performance.now();
  await question.ask(store, size, round);
  return performance.now() - started;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
