import type {
  ChangeQuery,
  DecisionQuery,
  KeyQuery,
  Metadata,
  SessionQuery,
  StepQuery,
  SummaryQuery,
  Tenant,
  UsageRepository,
} from "@tollgate/core/store";
import type { SqlDialect, SqlValue } from "./dialect.ts";
import { changesAlone, continued, listed } from "./index-conditions.ts";
import { pairText } from "./rows/step-row.ts";
import type { Condition } from "./select-page.ts";

/** Filters as conditions: constant text, every value a parameter. */
export interface Conditions {
  ofKeys(query: KeyQuery): readonly Condition[];
  ofSessions(query: SessionQuery): readonly Condition[];
  ofSteps(query: StepQuery): readonly Condition[];
  /** The Steps whose attempts a summary reads. Filters on single attempts select no Steps. */
  ofSummary(query: SummaryQuery): readonly Condition[];
  ofDecisions(query: DecisionQuery): readonly Condition[];
  /** The same for Steps that store the permit they opened with; null if the filter cannot match one. */
  ofPermits(query: DecisionQuery): readonly Condition[] | null;
  ofChanges(query: ChangeQuery): readonly Condition[];
  ofCounters(query: {
    readonly budgetId: string;
    readonly subject?: string;
    readonly periodStart?: number;
  }): readonly Condition[];
  /** Hourly sums. */
  ofUsage(query: Parameters<UsageRepository["hours"]>[0]): readonly Condition[];
}

/** Builds filters for a dialect. */
export function createConditions(
  dialect: Pick<SqlDialect, "contains" | "isOneOf" | "list">,
): Conditions {
  const anyOf = (
    column: string,
    values: readonly string[] | undefined,
    expression = column,
  ): readonly Condition[] => {
    if (values === undefined) return [];
    // A single value is compared with `=`, so an index on the column can serve it.
    if (values.length === 1) return is(column, values[0], expression);
    const text = dialect.isOneOf(expression, `:${column}`);
    return [{ text, parameters: { [column]: dialect.list(values) } }];
  };
  const indexedBy = (
    column: string,
    values: readonly string[] | undefined,
    expression = column,
  ): Choice => ({
    indexed: values?.length === 1 ? is(column, values[0], expression) : [],
    // The concatenation keeps a second index from leading elsewhere than the first.
    sifting: anyOf(column, values, values?.length === 1 ? `${expression} || ''` : expression),
  });
  const pairsOf = (metadata: Metadata = {}): readonly Condition[] =>
    Object.entries(metadata).map((pair, at) => {
      // Parameter names have no digits.
      const name = `pair${"_".repeat(at)}`;
      const text = dialect.contains("metadata", `:${name}`);
      return { text, parameters: { [name]: pairText(pair) } };
    });
  const ofWholeSteps = (query: StepQuery, ...choices: readonly Choice[]): readonly Condition[] => [
    { text: listed.steps, parameters: {} },
    ...tenant(query.organizationId),
    ...within("opened_at", query),
    ...oneIndexed(
      { indexed: sessionOf(query), sifting: [] },
      indexedBy("session_id", query.sessionId),
      indexedBy("key_id", query.keyId),
      query.metadata ? { indexed: [labelled], sifting: [] } : noChoice,
      ...choices,
      isUnsuccessful(query)
        ? indexedBy("unsuccessful", query.outcome)
        : { indexed: [], sifting: anyOf("outcome", query.outcome) },
    ),
    ...sifting(
      anyOf("user_id", query.userId),
      anyOf("turn_id", query.turnId),
      anyOf("source", query.source),
      anyOf("endpoint", query.endpoint),
      anyOf("data_class", query.dataClass),
      anyOf("decision_id", query.decisionId),
      pairsOf(query.metadata),
    ),
  ];
  return {
    ofKeys: ({ organizationId, userId, label, live }) => [
      { text: listed.keys, parameters: {} },
      ...tenant(organizationId),
      ...is("user_id", userId),
      ...sifting(
        is("label", label),
        live === undefined ? [] : [live.is ? liveAt(live.at) : endedAt(live.at)],
      ),
    ],
    ofSessions: ({ organizationId, userId, keyId, source }) => [
      // With both conditions, the index of a request's candidates can serve it.
      keyId !== undefined && source !== undefined
        ? { text: continued, parameters: {} }
        : { text: listed.sessions, parameters: {} },
      ...tenant(organizationId),
      ...is("key_id", keyId),
      ...(keyId === undefined ? sifting(is("source", source)) : is("source", source)),
      ...sifting(is("user_id", userId)),
    ],
    ofSteps: (query) => [
      ...ofWholeSteps(query, indexedBy("model", query.model, "lower(model)")),
      ...sifting(
        anyOf("gateway", query.gateway),
        anyOf("vendor", query.vendor),
        anyOf("connection", query.connection),
        anyOf("host", query.host),
      ),
    ],
    ofSummary: (query) => ofWholeSteps(query),
    ofUsage: (query) => [
      ...tenant(query.organizationId),
      ...is("detail", query.detail),
      ...within("hour", query),
    ],
    ofDecisions: (query) => [
      { text: listed.decisions, parameters: {} },
      ...tenant(query.organizationId),
      ...within("at", query),
      ...oneIndexed(
        indexedBy("key_id", query.keyId),
        query.effect === "deny"
          ? { indexed: [denied], sifting: is("effect", "deny", "effect || ''") }
          : { indexed: [], sifting: is("effect", query.effect) },
        query.refused === true || query.refusedBy !== undefined
          ? { indexed: [refused], sifting: [refusedOfKey] }
          : noChoice,
      ),
      ...sifting(
        anyOf("user_id", query.userId),
        anyOf("refused_by", query.refusedBy),
        query.refused === false ? [notRefused] : [],
      ),
    ],
    ofPermits: (query) =>
      query.effect === "deny" || query.refused === true || query.refusedBy !== undefined
        ? null
        : [
            carried,
            { text: listed.steps, parameters: {} },
            ...tenant(query.organizationId),
            ...within("opened_at", query),
            ...oneIndexed(indexedBy("key_id", query.keyId)),
            ...sifting(anyOf("user_id", query.userId)),
          ],
    ofChanges: (query) => [
      { text: changesAlone, parameters: {} },
      ...tenant(query.organizationId),
      ...within("at", query),
      ...sifting(anyOf("kind", query.kind)),
    ],
    ofCounters: ({ budgetId, subject, periodStart }) => [
      ...is("budget_id", budgetId),
      ...is("subject", subject),
      ...is("period_start", periodStart),
    ],
  };
}

function tenant(organizationId: Tenant): readonly Condition[] {
  return is("organization_id", organizationId ?? undefined);
}

function is(
  column: string,
  value: SqlValue | undefined,
  expression = column,
): readonly Condition[] {
  return value === undefined
    ? []
    : [{ text: `${expression} = :${column}`, parameters: { [column]: value } }];
}

/** A filter that has an index: the conditions that use it, and those that only sift what another index finds. */
interface Choice {
  readonly indexed: readonly Condition[];
  readonly sifting: readonly Condition[];
}

const noChoice: Choice = { indexed: [], sifting: [] };

/** The conditions of several filters. Rows are found through the index of the first. */
function oneIndexed(...choices: readonly Choice[]): readonly Condition[] {
  const first = choices.find(({ indexed }) => indexed.length > 0);
  return choices.flatMap((choice) => (choice === first ? choice.indexed : sifting(choice.sifting)));
}

function sifting(...filters: readonly (readonly Condition[])[]): readonly Condition[] {
  return filters.flat().map((condition) => ({ ...condition, sifts: true }));
}

/** The conditions of the partial indexes. A parameter would hide from the planner that they can serve. */
const labelled: Condition = { text: "metadata IS NOT NULL", parameters: {} };
const carried: Condition = { text: "permit IS NOT NULL", parameters: {} };
const denied: Condition = { text: "effect = 'deny'", parameters: {} };
const refused: Condition = { text: "refused_by IS NOT NULL", parameters: {} };
const refusedOfKey: Condition = { text: "refused_by || '' <> ''", parameters: {} };
const notRefused: Condition = { text: "refused_by IS NULL", parameters: {} };

function liveAt(at: number): Condition {
  return {
    text: "(revoked_at IS NULL OR revoked_at > :at) AND (expires_at IS NULL OR expires_at > :at)",
    parameters: { at },
  };
}

function endedAt(at: number): Condition {
  return { text: "(revoked_at <= :at OR expires_at <= :at)", parameters: { at } };
}

/** Whether the filter asks only for one outcome that is rare and has its own column. */
function isUnsuccessful({ outcome }: StepQuery): boolean {
  return outcome?.length === 1 && outcome[0] !== "completed" && outcome[0] !== "open";
}

/** A Turn belongs to one Session, whose Steps have an index. `o` is each organization if the filter names none. */
function sessionOf({ organizationId, turnId }: StepQuery): readonly Condition[] {
  const [turn_id] = turnId ?? [];
  if (turn_id === undefined || turnId?.length !== 1) return [];
  const organization = organizationId === null ? "o.id" : ":organization_id";
  const session = `SELECT session_id FROM turns
    WHERE organization_id = ${organization} AND id = :turn_id`;
  return [{ text: `session_id = (${session})`, parameters: { turn_id } }];
}

function within(
  column: string,
  { from, to }: { readonly from?: number; readonly to?: number },
): readonly Condition[] {
  return [
    ...(from === undefined ? [] : [{ text: `${column} >= :from`, parameters: { from } }]),
    ...(to === undefined ? [] : [{ text: `${column} < :to`, parameters: { to } }]),
  ];
}
