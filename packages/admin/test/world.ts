import { createRandomIds } from "@tollgate/core";
import { etagOf } from "@tollgate/core/administration";
import { createTestGateway, scriptedProvider, type TestGateway } from "@tollgate/testing";
import { type AdminGrant, type AdminHandler, adminHandler } from "../src/index.ts";
import type { Route } from "../src/operation.ts";
import { operations } from "../src/operations.ts";

/** Every operation by its name. */
export const routes: readonly (readonly [string, Route])[] = Object.entries(operations);

/** In every prompt and answer of a world. */
export const canaryPrompt = "canary-prompt-7f3a";
/** The credential of every connection of a world. */
export const canaryCredential = "sk-canary-credential-91c2";

/** The ids of an organization's records. */
export interface Ids {
  readonly organization: string;
  readonly key: string;
  readonly budget: string;
  readonly raise: string;
  readonly rateLimit: string;
  readonly step: string;
  readonly session: string;
  readonly decision: string;
  readonly token: string;
  /** The tags of the key, the budget and the rate limit, by the path of the record. */
  readonly tags: Readonly<Record<string, string>>;
}

/** A gateway with a record of each kind in each of two organizations, and its admin API. */
export interface World extends TestGateway {
  readonly admin: AdminHandler;
  readonly acme: Ids;
  readonly rival: Ids;
  /** Calls the admin API with a grant, or without one. */
  call(grant: AdminGrant | null, request: SampleRequest): Promise<Response>;
}

/** The ids of an organization that doesn't exist. */
export const unknown: Ids = {
  organization: "nobody",
  key: "00000000-0000-7000-8000-000000000001",
  budget: "b-nobody",
  raise: "00000000-0000-7000-8000-000000000002",
  rateLimit: "r-nobody",
  step: "00000000-0000-7000-8000-000000000003",
  session: "00000000-0000-7000-8000-000000000004",
  decision: "00000000-0000-7000-8000-000000000005",
  token: "00000000-0000-7000-8000-000000000006",
  tags: {},
};

export async function createWorld(): Promise<World> {
  const test = await createTestGateway({
    ids: createRandomIds(),
    providers: { own: { ...scriptedProvider(), connection: "customer" } },
  });
  const admin = adminHandler(test.gateway, {
    authenticateAdmin: (request) => JSON.parse(request.headers.get("x-grant") ?? "null"),
    clock: test.clock,
  });
  return {
    ...test,
    admin,
    acme: await populate(test, "acme"),
    rival: await populate(test, "rival"),
    call: (grant, { method, path, query, headers, body }) =>
      admin.fetch(urlOf({ path, query }), {
        method,
        headers: {
          ...headers,
          authorization: "Bearer signed-in",
          "x-grant": JSON.stringify(grant),
          ...(body === null ? {} : { "content-type": "application/json" }),
        },
        body: body === null ? null : JSON.stringify(body),
      }),
  };
}

/** Where the admin API of a world takes a request. */
export function urlOf({ path, query }: Pick<SampleRequest, "path" | "query">): string {
  return `http://host/ops/admin/v1${path}?${new URLSearchParams(query)}`;
}

async function populate(
  { gateway, provider, createKey }: TestGateway,
  organization: string,
): Promise<Ids> {
  const { key, chat } = await createKey({ organizationId: organization, userId: "ada" });
  provider.reply(`${canaryPrompt} answered`);
  const asked = chat({ messages: [{ role: "user", content: canaryPrompt }] });
  await (await gateway.fetch(asked)).text();
  const ids = { budget: `b-${organization}`, rateLimit: `r-${organization}` };
  const scope = { organization };
  const limit = { requests: 5_000 };
  const tags = {
    "/keys/{id}": etagOf(await gateway.keys.get({ organizationId: organization, id: key.id })),
    "/budgets/{id}": etagOf(
      await gateway.budgets.create({ id: ids.budget, scope, limit: { usd: 5 }, period: "month" }),
    ),
    "/rate-limits/{id}": etagOf(
      await gateway.rateLimits.create({ id: ids.rateLimit, scope, limit, per: "minute" }),
    ),
  };
  await gateway.connections.set({
    organizationId: organization,
    gateway: "own",
    apiKey: canaryCredential,
  });
  const raise = { id: ids.budget, by: { usd: 1 }, until: "2030-01-01" };
  const { id } = await gateway.budgets.raise(raise);
  const [step] = (await gateway.steps.list({ organizationId: organization })).data;
  if (step === undefined) throw new Error("The chat made no Step.");
  const { sessionId: session, decisionId: decision } = step;
  if (session === null) throw new Error("The chat's Step has no Session.");
  const { token } = await gateway.adminTokens.create({
    label: "ada",
    role: "viewer",
    organizations: [organization],
  });
  const { id: stepId } = step;
  const ofRecords = { key: key.id, raise: id, step: stepId, session, decision, token: token.id };
  return { ...ids, ...ofRecords, organization, tags };
}

/** A valid request for an operation. */
export interface SampleRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>> | null;
}

/** The valid request of an operation about the records of one organization, which `organizationId` names. */
export function sampleOf(
  [name, route]: readonly [string, Route],
  ids: Ids,
  organizationId: string | null = ids.organization,
): SampleRequest {
  const path = route.path.replace(/\{(\w+)\}/g, (_, parameter: string) =>
    encodeURIComponent(idOf(route, parameter, ids)),
  );
  const named =
    "organizationId" in route.input && organizationId !== null ? { organizationId } : {};
  const { method, replaces } = route;
  const headers = replaces === null ? {} : { "if-match": `"${ids.tags[replaces] ?? "unknown"}"` };
  if (method !== "POST")
    return { method, path, query: { ...named, ...queries[name] }, headers, body: null };
  return { method, path, query: {}, headers, body: { ...named, ...bodyOf(name, ids) } };
}

function idOf({ path }: Route, parameter: string, ids: Ids): string {
  if (parameter === "gateway") return "own";
  if (parameter === "raiseId") return ids.raise;
  const [, noun = ""] = path.split("/");
  const found = new Map([
    ["keys", ids.key],
    ["budgets", ids.budget],
    ["rate-limits", ids.rateLimit],
    ["steps", ids.step],
    ["sessions", ids.session],
    ["decisions", ids.decision],
    ["tokens", ids.token],
  ]).get(noun);
  if (found === undefined) throw new Error(`The world has no ${noun}.`);
  return found;
}

const queries: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "activity.export": { format: "csv" },
  "steps.export": { format: "jsonl" },
  "decisions.export": { format: "jsonl" },
  "changes.export": { format: "csv" },
  "steps.summarize": { by: "model" },
  "steps.series": { bucket: "hour", by: "model" },
};

function bodyOf(name: string, { organization }: Ids): Readonly<Record<string, unknown>> {
  const scope = { organization };
  const bodies: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    "keys.create": { userId: "grace", label: "new" },
    "keys.update": { label: "changed" },
    "keys.revokeOfUser": { userId: "ada" },
    "adminTokens.create": { label: "new", role: "viewer", organizations: [organization] },
    "budgets.create": { id: "new", scope, limit: { usd: 1 }, period: "day" },
    "budgets.update": { scope, limit: { usd: 2 }, period: "month" },
    "budgets.raise": { by: { usd: 1 }, until: "2030-01-01" },
    "rateLimits.create": { id: "new-limit", scope, limit: { concurrentSteps: 3 } },
    "rateLimits.update": { scope, limit: { requests: 9 }, per: "second" },
    "connections.set": { apiKey: canaryCredential },
    "steps.reprice": { prices: { "test/tollgate/scripted": { input: "3", output: "4" } } },
    "steps.correct": {
      usage: { promptTokens: 1, completionTokens: 1 },
      costNanoUsd: 7,
      reason: "an invoice",
    },
  };
  return bodies[name] ?? {};
}
