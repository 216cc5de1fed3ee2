import { setTimeout as pause } from "node:timers/promises";
import type { RateLimitConfiguration } from "@tollgate/core";
import type { Step } from "@tollgate/core/store";
import {
  checkEvidence,
  checkQuiet,
  checkUsage,
  type GatewayProcess,
  type StoreDump,
  spawnGateway,
} from "@tollgate/testing";
import { auditCounters, readAudit } from "../load/audit-counters.ts";
import { createSecrets } from "../load/keys.ts";
import { readLedger } from "../load/read-ledger.ts";
import { type DatabaseLocation, openDatabase } from "../stores/database-location.ts";
import type { CheckedLimit, CountedStep, RateHistory } from "./check-history.ts";
import type { RateClients, RateReport, RateSettings } from "./rate-process.ts";

/** A load of clients that all ask for more than their rate limits allow. */
export interface RateLoad {
  readonly clients: number;
  readonly processes: number;
  readonly seconds: number;
  /** How long the Steps last whose number in flight is limited, in milliseconds. */
  readonly stepMs: number;
  readonly seed: number;
}

/** The result of a load: the history of each rate limit, and every problem in the database. */
export interface RateLoadResult {
  readonly histories: readonly RateHistory[];
  readonly answered: number;
  readonly rejected: number;
  readonly unavailable: number;
  readonly failed: number;
  readonly problems: readonly string[];
}

/** The clients of one organization, and the rate limit that they all exceed. */
interface Group {
  readonly limit: CheckedLimit;
  /** The callers that the limit counts separately. */
  readonly each: "key" | "user" | "organization";
  readonly keys: number;
  readonly model: string;
}

/** The least wait of a rejected client: short enough that free room is asked for soon. */
const pauseMs = 50;

/** The groups of a load: every client asks for a multiple of its share, even on a busy machine. */
function groupsOf({ clients, stepMs }: RateLoad): readonly Group[] {
  const share = (amount: number): number => Math.max(1, Math.round((amount * clients) / 64));
  const tokens = share(400);
  return [
    {
      limit: { id: "requests-second", unit: "requests", ...perSecond(share(8)) },
      each: "key",
      keys: 2,
      model: "answers-10",
    },
    {
      // The default burst.
      limit: { id: "requests-minute", unit: "requests", ...perMinute(share(500)) },
      each: "organization",
      keys: 1,
      model: "answers-10",
    },
    {
      limit: { id: "tokens-second", unit: "tokens", ...perSecond(tokens), burst: tokens + 200 },
      each: "user",
      keys: 2,
      model: "answers-10",
    },
    {
      limit: { id: "steps", unit: "steps", limit: share(3), per: null, burst: 0 },
      each: "key",
      keys: 2,
      model: `answers-${stepMs}`,
    },
  ];
}

const perSecond = (limit: number) => ({ limit, per: "second" as const, burst: limit });
const perMinute = (limit: number) => ({
  limit,
  per: "minute" as const,
  burst: Math.max(1, Math.floor(limit / 10)),
});

/** A limit that every request counts toward and none exceeds. */
export const sharedLimit: RateLimitConfiguration = {
  id: "shared",
  limit: { requests: 60_000_000 },
  per: "minute",
};

/** Runs the load on an empty database, and reads its history. Every group is an organization of its limit's name. */
export async function loadLimits(place: DatabaseLocation, load: RateLoad): Promise<RateLoadResult> {
  const groups = groupsOf(load);
  const secrets: (readonly string[])[] = [];
  for (const { limit, keys } of groups)
    secrets.push(await createSecrets(place, { organizationId: limit.id, count: keys }));
  await auditCounters(place, "steps");
  const rateLimits = [sharedLimit, ...groups.map(configurationOf)];
  const children = await startRateProcesses(place, { ...load, rateLimits });
  const perProcess = Math.ceil(load.clients / load.processes);
  for (const [index, child] of children.entries())
    await child.command("begin", clientsOf(groups, secrets, index * perProcess, perProcess));
  await pause(load.seconds * 1_000);
  await Promise.all(children.map((child) => child.command("end")));
  const reports = await Promise.all(children.map(reportOf));
  await Promise.all(children.map((child) => child.stop()));

  const histories: RateHistory[] = [];
  const problems: string[] = [];
  for (const group of groups) {
    const ledger = await ledgerOf(place, group);
    histories.push(await historyOf(place, group, ledger));
    problems.push(...[checkUsage, checkEvidence, checkQuiet].flatMap((check) => check(ledger)));
  }
  const sum = (field: Exclude<keyof RateReport, "cpuMs">): number =>
    reports.reduce((total, report) => total + report[field], 0);
  return {
    histories,
    problems,
    answered: sum("answered"),
    rejected: sum("rejected"),
    unavailable: sum("unavailable"),
    failed: sum("failed"),
  };
}

const script = new URL("./rate-process.ts", import.meta.url);

/** Starts processes on one database with the same rate limits. */
export async function startRateProcesses(
  place: DatabaseLocation,
  { processes, seed, rateLimits }: Omit<RateSettings, "place"> & { readonly processes: number },
): Promise<readonly GatewayProcess[]> {
  const children: GatewayProcess[] = [];
  // One after the other, because each has a limited time to start.
  for (let index = 0; index < processes; index++)
    children.push(await spawnGateway(script, { place, rateLimits, seed: seed + index }));
  return children;
}

/** Reads the report of a process. */
export async function reportOf(child: GatewayProcess): Promise<RateReport> {
  const report = await child.command("report");
  if (isReport(report)) return report;
  throw new Error("The process sent no report.");
}

function isReport(value: unknown): value is RateReport {
  const names = ["answered", "rejected", "unavailable", "failed", "cpuMs"];
  return (
    typeof value === "object" &&
    value !== null &&
    names.every((name) => typeof Reflect.get(value, name) === "number")
  );
}

function configurationOf({ limit, each }: Group): RateLimitConfiguration {
  const { id, unit, per, burst } = limit;
  const scope = { organization: id, each };
  if (unit === "steps" || per === null)
    return { id, scope, limit: { concurrentSteps: limit.limit } };
  const amount = unit === "requests" ? { requests: limit.limit } : { tokens: limit.limit };
  return { id, scope, limit: amount, per, burst };
}

/** Clients in turn of every group, and of every key of their group. */
function clientsOf(
  groups: readonly Group[],
  secrets: readonly (readonly string[])[],
  first: number,
  count: number,
): RateClients {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const groupOf = (client: number): number => client % groups.length;
  return {
    pauseMs,
    models: numbers.map((client) => groups[groupOf(client)]?.model ?? ""),
    secrets: numbers.map((client) => {
      const keys = secrets[groupOf(client)] ?? [];
      return keys[Math.floor(client / groups.length) % keys.length] ?? "";
    }),
  };
}

async function ledgerOf(place: DatabaseLocation, { limit }: Group): Promise<StoreDump> {
  const store = openDatabase(place);
  try {
    return await readLedger(store, { organizationId: limit.id, budgetId: limit.id });
  } finally {
    await store.close();
  }
}

async function historyOf(
  place: DatabaseLocation,
  { limit, each }: Group,
  { steps, decisions }: StoreDump,
): Promise<RateHistory> {
  return {
    limit,
    steps: steps.map((step) => countedStep(limit, subjectOf(each, step), step)),
    inFlight: limit.unit === "steps" ? await readAudit(place) : [],
    rejections: decisions.flatMap(({ at, refusal }) =>
      refusal?.by === "rate_limit" && refusal.rateLimitId === limit.id
        ? [{ subject: refusal.subject, at }]
        : [],
    ),
  };
}

function countedStep({ unit }: CheckedLimit, subject: string, step: Step): CountedStep {
  const { openedAt: at, settledAt, attempts } = step;
  const times = { subject, at, settledAt: settledAt ?? at };
  if (unit !== "tokens") return { ...times, used: 1, reserved: 1 };
  const [attempt] = attempts;
  const reserved = (attempt?.estimatedInputTokens ?? 0) + (attempt?.estimatedOutputTokens ?? 0);
  return { ...times, used: attempt?.end?.usage.totalTokens ?? reserved, reserved };
}

/** The subject of a counter, as the product names it. */
function subjectOf(each: Group["each"], step: Step): string {
  switch (each) {
    case "key":
      return step.keyId;
    case "user":
      return JSON.stringify([step.organizationId, step.userId]);
    case "organization":
      return step.organizationId;
  }
}
