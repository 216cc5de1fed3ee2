import type { BudgetCounter } from "@tollgate/core/store";
import type { HoldRecord, SessionState, StepRecord, View } from "../src/index.ts";

/** The rows of a store that a test needs. */
export interface Rows {
  readonly step?: StepRecord;
  readonly sessions?: readonly SessionState[];
  readonly holds?: readonly HoldRecord[];
  readonly counters?: readonly BudgetCounter[];
  readonly budgetsVersion?: number;
}

/** A view of only these rows, frozen so that a rule can't change them. */
export function viewOf(rows: Rows): View {
  const { step = null, sessions = [], holds = [], counters = [] } = deeplyFrozen(rows);
  const session = (_: string, id: string) => sessions.find((row) => row.id === id) ?? null;
  return {
    budgetsVersion: () => rows.budgetsVersion ?? 0,
    session,
    sessionOfTurn: () => null,
    recentMatches: () => sessions,
    matchingBranches: () => [],
    chainBefore: () => new Uint8Array(),
    key: () => ({ userId: "ada", label: "laptop", expiresAt: null, revokedAt: null, version: 0 }),
    step: (_, id) => (step?.step.id === id ? step : null),
    openedBefore: (_, id) => (step?.step.id === id ? step : null),
    holds: () => holds,
    counter: ({ budgetId, subject }) =>
      counters.find((row) => row.budgetId === budgetId && row.subject === subject) ?? null,
    corrections: () => [],
    hasDecision: () => false,
    response: () => null,
    continuations: () => [],
    expiredResponses: () => [],
    expiredClaims: () => [],
    claim: () => null,
    organizationsOfOldSteps: () => ({ due: [], next: null }),
    oldSteps: () => [],
    organizationsOfOldSessions: () => ({ due: [], next: null }),
    sessionsInOrder: () => [],
    isNeededSince: () => false,
    contents: () => [{ of: "part", stepId: "step", place: 0, bytes: 1 }],
  };
}

function deeplyFrozen<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  for (const part of Object.values(value)) deeplyFrozen(part);
  return Object.freeze(value);
}
