import fc from "fast-check";

/** A part of an answer: a number of tokens that are visible, or only on the bill. */
export interface OutputPart {
  readonly kind: "text" | "tool" | "reasoning" | "hidden" | "usage";
  readonly tokens: number;
}

/** One call, and how it ends. */
export interface PlannedCall {
  readonly stream: boolean;
  readonly cap: number | null;
  readonly tier: "default" | "priority" | "flex" | null;
  readonly parts: readonly OutputPart[];
  /** The number of tokens by which the prompt is longer than its estimate. */
  readonly underestimatedBy: number;
  readonly cached: boolean;
  /** The usage that the upstream reports at its end. */
  readonly report: "whole" | "none";
  readonly end: "finish" | "cut" | "fail" | "refuse" | "silent";
  /** The position of the event before which the client leaves or its process dies; null for neither. */
  readonly clientLeavesAt: number | null;
  readonly processDiesAt: number | null;
  /** Whether its process renewed its lease before it died. */
  readonly renewedLease: boolean;
  /** Whether the upstream ignores an abort and bills the output after it. */
  readonly ignoresAbort: boolean;
}

/** Concurrent calls under hard budgets. */
export interface Plan {
  readonly reasons: boolean;
  readonly maxOutputTokens: number | null;
  readonly tokens: number | null;
  readonly nanoUsd: number | null;
  readonly onDisconnect: "abort" | "drain" | null;
  readonly calls: readonly PlannedCall[];
}

const part: fc.Arbitrary<OutputPart> = fc.record({
  kind: fc.constantFrom("text", "text", "tool", "reasoning", "hidden", "usage"),
  tokens: fc.integer({ min: 1, max: 900 }),
});

const call: fc.Arbitrary<PlannedCall> = fc.record({
  stream: fc.boolean(),
  cap: fc.option(fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.constant(2 ** 53 - 1))),
  tier: fc.constantFrom(null, "default", "priority", "flex"),
  parts: fc.array(part, { maxLength: 6 }),
  underestimatedBy: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 500 })),
  cached: fc.boolean(),
  report: fc.constantFrom("whole", "none"),
  end: fc.constantFrom("finish", "finish", "finish", "cut", "fail", "refuse", "silent"),
  clientLeavesAt: fc.option(fc.nat(7)),
  processDiesAt: fc.option(fc.nat(7), { freq: 4 }),
  renewedLease: fc.boolean(),
  ignoresAbort: fc.boolean(),
});

export const anyPlan: fc.Arbitrary<Plan> = fc.record({
  reasons: fc.boolean(),
  maxOutputTokens: fc.option(fc.integer({ min: 100, max: 20_000 })),
  tokens: fc.option(fc.integer({ min: 500, max: 30_000 })),
  nanoUsd: fc.option(fc.integer({ min: 1_000_000, max: 60_000_000 })),
  onDisconnect: fc.option(fc.constantFrom("abort", "drain")),
  calls: fc.array(call, { minLength: 1, maxLength: 6 }),
});
