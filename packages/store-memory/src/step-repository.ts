import {
  createUsageFold,
  type DecisionQuery,
  type DecisionRepository,
  lowerAscii,
  type Step,
  type StepContents,
  type StepQuery,
  type StepRepository,
} from "@tollgate/core/store";
import { sweepSteps } from "@tollgate/store-engine";
import type { CarryOut } from "./carry-out.ts";
import { stepOfRow } from "./shown-step.ts";
import type { DecisionRow, State, StepRow } from "./state.ts";
import { mapPage } from "./table.ts";

export function createStepRepository(state: State, carryOut: CarryOut): StepRepository {
  return {
    async get(organizationId, id) {
      const row = state.steps.get(organizationId, id);
      return row && stepOfRow(row);
    },
    async list(query, paging) {
      const page = state.steps.page(
        {
          direction: "newest-first",
          tenant: query.organizationId,
          matches: ({ record }) => matchesStepQuery(record.step, query),
        },
        paging,
      );
      return mapPage(page, stepOfRow);
    },
    async summarize(query, paging) {
      const page = state.steps.page(
        {
          direction: "newest-first",
          tenant: query.organizationId,
          matches: ({ record }) => matchesSummaryQuery(record.step, query),
        },
        paging,
      );
      const fold = createUsageFold(query.by, query);
      for (const row of page.data) fold.addStep(stepOfRow(row));
      return { groups: fold.groups(), nextCursor: page.nextCursor };
    },
    async contents(organizationId, id) {
      const row = state.steps.get(organizationId, id);
      return row && contentsOf(state, row);
    },
    sweep: async (sweep) => carryOut((view) => sweepSteps(view, sweep)),
  };
}

const stepParts = ["instructions", "request", "reply", "reasoning"] as const;

function contentsOf(state: State, { id, organizationId, record }: StepRow): StepContents {
  const session = state.sessions.get(organizationId, record.step.sessionId);
  const own = session?.parts.filter(({ stepId }) => stepId === id) ?? [];
  const parts = new Map(own.map((part) => [part.kind, part]));
  return {
    instructions: bytesOf(parts.get("instructions")?.content),
    request: bytesOf(parts.get("request")?.content),
    reply: bytesOf(parts.get("reply")?.content),
    reasoning: bytesOf(parts.get("reasoning")?.content),
    withheld: stepParts.filter((name) => parts.get(name)?.content === null),
  };
}

function bytesOf(content: string | null | undefined): Uint8Array | null {
  return content == null ? null : Uint8Array.from(Buffer.from(content, "latin1"));
}

function matchesStepQuery(step: Step, query: StepQuery): boolean {
  const attempt = step.attempts.at(-1);
  return (
    matchesSummaryQuery(step, query) &&
    isOneOf(query.gateway, attempt?.gateway) &&
    isOneOf(query.vendor, attempt?.vendor) &&
    isOneOf(query.model, attempt && lowerAscii(attempt.model)) &&
    isOneOf(query.connection, attempt?.connection) &&
    isOneOf(query.host, attempt?.end?.host)
  );
}

/** Whether a Step is asked for by what is its own, its attempts aside. */
function matchesSummaryQuery(step: Step, query: StepQuery): boolean {
  return (
    isWithin(step.openedAt, query) &&
    isOneOf(query.userId, step.userId) &&
    isOneOf(query.keyId, step.keyId) &&
    isOneOf(query.sessionId, step.sessionId) &&
    isOneOf(query.turnId, step.turnId) &&
    isOneOf(query.source, step.source) &&
    isOneOf(query.endpoint, step.endpoint) &&
    isOneOf(query.dataClass, step.dataClass) &&
    isOneOf(query.decisionId, step.decisionId) &&
    Object.entries(query.metadata ?? {}).every(
      ([name, value]) => Object.hasOwn(step.metadata, name) && step.metadata[name] === value,
    ) &&
    isOneOf(query.outcome, step.outcome ?? "open")
  );
}

export function createDecisionRepository(state: State): DecisionRepository {
  return {
    get: async (organizationId, id) => state.decisions.get(organizationId, id)?.decision ?? null,
    async list(query, paging) {
      const page = state.decisions.page(
        {
          direction: "newest-first",
          tenant: query.organizationId,
          matches: (row) => matchesDecisionQuery(row, query),
        },
        paging,
      );
      return mapPage(page, ({ decision }) => decision);
    },
  };
}

function matchesDecisionQuery(
  { userId, keyId, decision }: DecisionRow,
  query: DecisionQuery,
): boolean {
  return (
    isWithin(decision.at, query) &&
    isOneOf(query.userId, userId) &&
    isOneOf(query.keyId, keyId) &&
    (query.effect === undefined || query.effect === decision.effect) &&
    (query.refused === undefined || query.refused === (decision.refusal !== null)) &&
    isOneOf(query.refusedBy, decision.refusal?.by)
  );
}

function isWithin(
  at: number,
  { from, to }: { readonly from?: number; readonly to?: number },
): boolean {
  return (from === undefined || at >= from) && (to === undefined || at < to);
}

function isOneOf(values: readonly string[] | undefined, value: string | null | undefined): boolean {
  return values === undefined || (value != null && values.includes(value));
}
