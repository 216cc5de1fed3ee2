import { attemptEndRecord, type StepRecord } from "@tollgate/store-engine";
import {
  decisionToRow,
  endToRow,
  type SqlParameters,
  stepToRow,
  verdictOf,
} from "@tollgate/store-sql";
import { attemptEnd, attemptStart, decisionOf, organizationId } from "../step-intents.ts";

/** The size of a history. */
export interface Size {
  readonly steps: number;
  /** Also the number of API keys. */
  readonly sessions: number;
  /** How many organizations share it, each with an equal part of the Sessions. Default: one. */
  readonly organizations?: number;
  /** The time between Steps, in milliseconds. Default: `apart`. */
  readonly apart?: number;
  /** Leaves out what sums of usage don't read: transcripts, decisions and evidence. */
  readonly stepsAlone?: boolean;
  /** Gives every attempt a price and a cost. Default: the price is unknown. */
  readonly isPriced?: boolean;
}

/** The expressions that differ between the databases. */
export interface Words {
  /** A table `series` of the numbers `n` from 0 up to a count, exclusive. */
  series(count: number): string;
  /** 32 bytes derived from a number. */
  digest(number: string): string;
  /** The bytes of a text. */
  bytes(text: string): string;
  /** Whether the row of a Step contains the permit that opened it and the Turn that it began. */
  readonly carriesPermits: boolean;
}

/** The time of the first Step, and the time between Steps, in milliseconds. */
export const firstAt = Date.UTC(2026, 0, 5);
export const apart = 1_000;
/** The number of Sessions of the rare key, and of Steps with the rare model and outcome, all long ago. */
export const rare = 25;
export const rareKey = 5;
const busyKeys = 5;

/** An id derived from a number. Ids sort like the numbers, as real ids sort by time. */
export function idOf(prefix: string, number: number): string {
  return `${prefix}-${1_000_000_000_000 + number}`;
}

/** The secret that the statements below give the store. */
export const cursorSecret = "measured";

/** The statements that fill an empty schema with a history of this size. */
export function fillingStatements(size: Size, words: Words): readonly string[] {
  const session = `(n * ${size.sessions} / ${size.steps})`;
  const insert = (table: string, count: number, columns: Readonly<Record<string, string>>) =>
    `INSERT INTO ${table} (${Object.keys(columns).join(", ")})
      SELECT ${Object.values(columns).join(", ")} FROM ${words.series(count)}`;
  const { steps, sessions } = size;
  const others = () => [
    insert("sessions", sessions, sessionRow(size, words)),
    ...(words.carriesPermits ? [] : [insert("turns", steps, turnRow(session, size))]),
    insert("decisions", words.carriesPermits ? rare : steps, decisionRow(session, size)),
    insert("transcript_parts", steps, partRow(session, size, words)),
    insert("leaves", steps, leafRow(session, size, words)),
  ];
  return [
    `UPDATE store_state SET cursor_secret = ${text(cursorSecret)}`,
    insert("organizations", size.organizations ?? 1, {
      id: organizationOf("n", size),
      salt: words.digest("0"),
    }),
    insert("api_keys", sessions, keyRow(size)),
    insert("key_secrets", sessions, {
      digest: words.digest("n"),
      organization_id: organizationOf("n", size),
      key_id: id("key", "n"),
    }),
    insert("steps", steps, stepRow(session, size, words)),
    ...(size.stepsAlone ? [] : others()),
  ];
}

/** The highest sequence number in a history. */
export function lastSequence({ steps }: Size): number {
  return steps * 2 + 1;
}

const at = `${firstAt} + n * ${apart}`;
const userOf = (key: string): string => `'user-' || (${key} % 2)`;
const organizationOf = (session: string, { organizations }: Size): string =>
  organizations === undefined
    ? text(organizationId)
    : id("organization", `(${session}) % ${organizations}`);
const keyOf = (session: string, { organizations }: Size): string =>
  organizations !== undefined
    ? session
    : `CASE WHEN ${session} < ${rare} THEN ${rareKey} ELSE ${session} % ${busyKeys} END`;

const keyRow = (size: Size) => ({
  organization_id: organizationOf("n", size),
  id: id("key", "n"),
  user_id: userOf("n"),
  label: "'key ' || n",
  prefix: "'tg_abcd'",
  default_data_class: "'D1_INTERNAL'",
  minimum_data_class: "'D0_PUBLIC'",
  created_at: at,
  version: "0",
  sequence: "n",
});

const owner = (session: string, size: Size) => ({
  organization_id: organizationOf(session, size),
  user_id: userOf(keyOf(session, size)),
  key_id: id("key", keyOf(session, size)),
});

function sessionRow(size: Size, { digest }: Words) {
  const { steps, sessions } = size;
  const lastStep = `((n + 1) * ${steps} / ${sessions} - 1)`;
  return {
    ...owner("n", size),
    id: id("session", "n"),
    source: "'api'",
    head: digest("n"),
    length: `${(2 * steps) / sessions}`,
    created_at: `${firstAt} + n * ${(steps / sessions) * apart}`,
    updated_at: `${firstAt} + ${lastStep} * ${apart}`,
    updated: `${lastStep} * 2`,
    in_flight: "0",
    turn_id: id("step", lastStep),
    common_length: "0",
    data_classes: `'["D1_INTERNAL"]'`,
  };
}

function turnRow(session: string, size: Size) {
  return {
    organization_id: organizationOf(session, size),
    id: id("step", "n"),
    session_id: id("session", session),
  };
}

function decisionRow(session: string, size: Size) {
  return {
    ...constants(decisionToRow(template.owner, template.decision, 0)),
    ...owner(session, size),
    id: id("decision", "n"),
    effect: `CASE WHEN n < ${rare} THEN 'deny' ELSE 'permit' END`,
    at,
    sequence: "n * 2",
  };
}

function stepRow(session: string, size: Size, { carriesPermits }: Words) {
  const record = stepTemplate(size.isPriced === true);
  return {
    ...constants(stepToRow(record, 0)),
    ...constants(endToRow(record)),
    ...owner(session, size),
    id: id("step", "n"),
    decision_id: id(carriesPermits ? "step" : "decision", "n"),
    session_id: id("session", session),
    turn_id: id("step", "n"),
    opened_at: `${firstAt} + n * ${size.apart ?? apart}`,
    outcome: `CASE WHEN n < ${rare} THEN 'interrupted' WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END`,
    model: `CASE WHEN n < ${rare} THEN 'model-rare' ELSE 'model-' || (n % 4) END`,
    sequence: "n * 2",
    ...(carriesPermits && carried()),
  };
}

/** A Step with the values that all Steps of a history have in common. */
function stepTemplate(isPriced: boolean): StepRecord {
  const { owner: of, decision, attempt } = template;
  const end = attemptEndRecord(isPriced ? { ...attemptEnd, ...priced } : attemptEnd);
  const head = "0".repeat(64);
  return {
    step: {
      ...of,
      id: "",
      keyLabel: "a key",
      source: "api",
      endpoint: "chat_completions",
      stream: false,
      requestedModel: "sim/vendor/model-1",
      dataClass: "D1_INTERNAL",
      decisionId: decision.id,
      sessionId: "",
      turnId: "",
      stepNumber: 0,
      droppedFields: {},
      metadata: {},
      openedAt: firstAt,
      settledAt: firstAt + 500,
      outcome: "completed",
      reason: null,
      finishReason: "stop",
      attempts: [
        { ...attempt, price: isPriced ? price : null, end: { ...end, host: "upstream.example" } },
      ],
      idempotencyKeySha256: null,
      retryOf: null,
      head,
      replyHead: head,
    },
    processId: "process",
    length: 2,
    openedSession: false,
    branchedFromSessionId: null,
    holds: 0,
    carried: { usd: 0, tokens: 0 },
  };
}

/** Nanodollars per million tokens, and the cost of `attemptEnd` at them. */
const price = { input: 150_000_000, output: 600_000_000, source: "custom" } as const;
const priced = {
  costNanoUsd:
    (attemptEnd.usage.promptTokens * 150_000_000 +
      attemptEnd.usage.completionTokens * 600_000_000) /
    1_000_000,
  priceSource: "custom",
} as const;

/** The oldest Steps were denied. */
function carried() {
  const { decision } = template;
  const permit = text(
    JSON.stringify([verdictOf(decision), decision.facts, decision.policyVersion]),
  );
  return { renewal: "1", permit: `CASE WHEN n >= ${rare} THEN ${permit} END` };
}

function partRow(session: string, size: Size, { digest, bytes }: Words) {
  return {
    organization_id: organizationOf(session, size),
    session_id: id("session", session),
    position: "n",
    step_id: id("step", "n"),
    kind: "'request'",
    count: "1",
    chain: digest("n"),
    content: bytes(text(`[${JSON.stringify({ role: "user", content: "Tides? ".repeat(30) })}]`)),
    salt: digest("n"),
    commitment: digest("n"),
  };
}

function leafRow(session: string, size: Size, { digest }: Words) {
  return {
    organization_id: organizationOf(session, size),
    sequence: "n * 2 + 1",
    id: id("leaf", "n"),
    kind: "'step.settled'",
    at,
    meta: text(JSON.stringify({ attempt: attemptEnd, kind: "step.settled" })),
    hash: digest("n"),
  };
}

const template = (() => {
  const of = { organizationId, userId: "user-0", keyId: idOf("key", 0) };
  const decision = decisionOf(idOf("decision", 0), of, firstAt);
  return { owner: of, decision, attempt: attemptStart(decision, firstAt) };
})();

function id(prefix: string, number: string): string {
  return `'${prefix}-' || CAST(1000000000000 + (${number}) AS TEXT)`;
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

function constants(parameters: SqlParameters): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      typeof value === "string" ? text(value) : `${value ?? "NULL"}`,
    ]),
  );
}
