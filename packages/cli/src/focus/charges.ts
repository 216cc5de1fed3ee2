import type {
  AttemptRecord,
  CorrectionRecord,
  FiguresRecord,
  ListPrice,
  StepRecord,
} from "@tollgate/core";

/** The subject of a charge: tokens of one kind, a request, or all tokens of an attempt without a price table. */
export type ChargedKind = ListPrice["kind"] | "all";

/** One row of a FOCUS file: the part of an attempt, or of its correction, that has one price. */
export interface Charge {
  readonly step: StepRecord;
  readonly attempt: AttemptRecord;
  /** The correction that the row is a part of; null for a part of the figures recorded first. */
  readonly correction: CorrectionRecord | null;
  readonly kind: ChargedKind;
  readonly quantity: number;
  /** Nanodollars per million tokens, or per request. Null without a price table, and for corrections. */
  readonly nanoUsd: number | null;
  /** US dollars at `decimalScale`. The recorded price times the quantity, not rounded. */
  readonly listCost: bigint;
  /** US dollars at `decimalScale`, whole nanodollars. */
  readonly billedCost: bigint;
}

/** The digits after the decimal point of every amount: a token at a price in nanodollars per million needs 15. */
export const decimalScale = 15;

const perNanoUsd = 1_000_000n;

type Part = Omit<Charge, "step" | "attempt" | "correction">;

type Figures = Pick<FiguresRecord, "totalTokens" | "costNanoUsd" | "listPrices">;

/**
 * The charges of a Step's ended attempts. Their billed costs add up to its cost, and their tokens to its tokens: the
 * corrections of an attempt are the differences to the figures before them.
 */
export function* chargesOf(step: StepRecord): Generator<Charge, void, void> {
  for (const attempt of step.attempts) {
    if (attempt.outcome === "open") continue;
    let before = partsOf(attempt.recorded ?? attempt);
    for (const part of before) yield { step, attempt, correction: null, ...part };
    for (const correction of attempt.corrections) {
      const after = partsOf(correction);
      for (const part of difference(before, after)) yield { step, attempt, correction, ...part };
      before = after;
    }
  }
}

/** An attempt that used nothing and cost nothing has no charge. An unknown cost counts as 0, as in summaries. */
function partsOf({ totalTokens, costNanoUsd, listPrices }: Figures): readonly Part[] {
  const cost = BigInt(costNanoUsd ?? 0);
  if (listPrices === null || listPrices.length === 0) {
    if (totalTokens === 0 && costNanoUsd === 0) return [];
    const billedCost = cost * perNanoUsd;
    return [
      { kind: "all", quantity: totalTokens, nanoUsd: null, listCost: billedCost, billedCost },
    ];
  }
  const parts = listPrices.map((price) => ({ ...price, listCost: listCostOf(price) }));
  const weights = parts.some(({ listCost }) => listCost > 0n)
    ? parts.map(({ listCost }) => listCost)
    : parts.map(({ quantity }) => BigInt(quantity));
  const shares = divide(cost, weights);
  return parts.map((part, at) => ({ ...part, billedCost: (shares[at] ?? 0n) * perNanoUsd }));
}

/** Nanodollars per million tokens are the 15th digit after the decimal point of a dollar. */
function listCostOf({ kind, quantity, nanoUsd }: ListPrice): bigint {
  return BigInt(quantity) * BigInt(nanoUsd) * (kind === "request" ? perNanoUsd : 1n);
}

/** Divides an amount in proportion to weights into whole numbers that add up to it. */
function divide(amount: bigint, weights: readonly bigint[]): readonly bigint[] {
  const whole = weights.reduce((sum, weight) => sum + weight, 0n);
  let reached = 0n;
  let given = 0n;
  return weights.map((weight) => {
    reached += weight;
    const upToHere = whole === 0n ? amount : (amount * reached) / whole;
    const share = upToHere - given;
    given = upToHere;
    return share;
  });
}

function difference(before: readonly Part[], after: readonly Part[]): readonly Part[] {
  const kinds = new Set([...before, ...after].map(({ kind }) => kind));
  return [...kinds].flatMap((kind) => {
    const old = before.find((part) => part.kind === kind);
    const now = after.find((part) => part.kind === kind);
    const part: Part = {
      kind,
      quantity: (now?.quantity ?? 0) - (old?.quantity ?? 0),
      nanoUsd: null,
      listCost: (now?.listCost ?? 0n) - (old?.listCost ?? 0n),
      billedCost: (now?.billedCost ?? 0n) - (old?.billedCost ?? 0n),
    };
    return part.quantity === 0 && part.listCost === 0n && part.billedCost === 0n ? [] : [part];
  });
}
