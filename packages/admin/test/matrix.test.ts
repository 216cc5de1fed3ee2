import { everyOrganization } from "@tollgate/core";
import { tryRead } from "@tollgate/core/schemas";
import { describe, expect, it } from "vitest";
import type { AdminGrant, AdminRole } from "../src/index.ts";
import {
  canaryCredential,
  canaryPrompt,
  createWorld,
  type Ids,
  routes,
  sampleOf,
  unknown,
  type World,
} from "./world.ts";

const roles: readonly AdminRole[] = ["viewer", "operator", "admin"];
const transcripts = { upTo: "D3_RESTRICTED" };
const secret = /tga?_[0-9A-Za-z]{49}/;

/** Operations that concern no organization's records. */
const ofNobody = ["me", "models", "openApi"];
const ofContent = ["steps.content", "sessions.transcript"];
/** They name an organization in the scope of a new record. */
const ofScope = ["budgets.create", "rateLimits.create"];
const ofSecrets = ["keys.create", "keys.rotate", "adminTokens.create"];

const grantOf = (role: AdminRole): AdminGrant => ({
  actor: `${role}@acme`,
  organizations: ["acme"],
  role,
  transcripts,
});

const suffices = (role: AdminRole, required: AdminRole) =>
  roles.indexOf(role) >= roles.indexOf(required);

/** The bytes of an answer: `text` would refuse one with a secret. */
const bodyOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer()).toString();

/** An answer without what names the organization in it. */
const anonymous = async (answer: Response, { tags: _tags, ...ids }: Ids) => {
  let body = await bodyOf(answer);
  const fromMaxLength = Object.entries(ids).sort(([, a], [, b]) => b.length - a.length);
  for (const [name, id] of fromMaxLength) body = body.replaceAll(id, name);
  return `${answer.status} ${body}`;
};

const changesOf = async ({ gateway }: World) =>
  (await gateway.changes.list({ organizationId: everyOrganization })).data;

let shared: Promise<World> | undefined;
/** A new world for what may change it, and one for all that may not. */
const worldFor = (changes: boolean): Promise<World> => {
  if (changes) return createWorld();
  shared ??= createWorld();
  return shared;
};

describe.each(routes)("%s", (name, route) => {
  it.each(roles)("with the role %s, is for its role and its own organization", async (role) => {
    const allowed = suffices(role, route.role) && !route.platform;
    const world = await worldFor(allowed && route.method !== "GET");
    const { call, acme, rival } = world;
    const before = await changesOf(world);
    const grant = grantOf(role);
    const namesRecord = /\{(?:id|raiseId)\}/.test(route.path) || ofScope.includes(name);
    // Records of another organization, named or hidden behind the own one, are as unknown as those that don't exist.
    for (const organizationId of [undefined, "acme"]) {
      if (allowed && (ofNobody.includes(name) || (organizationId === "acme" && !namesRecord)))
        continue;
      const foreign = await call(grant, sampleOf([name, route], rival, organizationId));
      const nowhere = await call(grant, sampleOf([name, route], unknown, organizationId));
      const answers = [await anonymous(foreign, rival), await anonymous(nowhere, unknown)];
      expect(answers[0]).toBe(answers[1]);
      expect(foreign.status, answers[0]).toBe(allowed ? 404 : 403);
    }
    expect(await changesOf(world)).toEqual(before);
    if (!allowed) return;
    const answer = await call(grant, sampleOf([name, route], acme));
    const body = await bodyOf(answer);
    expect(answer.status, body).toBe(route.creates ? 201 : 200);
  });

  it("answers who signed in, in its schema, without content or secrets unless it is for them", async () => {
    const { call, acme } = await worldFor(route.method !== "GET");
    expect((await call(null, sampleOf([name, route], acme))).status).toBe(401);
    const all: AdminGrant = { actor: "root", organizations: "all", role: "admin" };
    const answer = await call(all, sampleOf([name, route], acme));
    const body = await bodyOf(answer);
    expect(answer.headers.get("cache-control")).toBe("private, no-store");
    expect(body).not.toContain(canaryPrompt);
    expect(body).not.toContain(canaryCredential);
    expect(secret.test(body)).toBe(ofSecrets.includes(name));
    if (ofContent.includes(name)) {
      expect(answer.status).toBe(403);
      const read = await call({ ...all, transcripts }, sampleOf([name, route], acme));
      expect(await bodyOf(read)).toContain(canaryPrompt);
      return;
    }
    if (route.output === "file") return;
    const json: unknown = JSON.parse(body);
    expect(tryRead(route.output, json)).toEqual({ value: json, problems: [] });
  });
});

it.each(routes.filter(([, { replaces }]) => replaces !== null))(
  "%s replaces a record, and requires its tag",
  async (name, route) => {
    const { call, acme, gateway } = await createWorld();
    const before = await gateway.changes.list({ organizationId: "acme" });
    const sample = sampleOf([name, route], acme);
    const answer = await call(grantOf("admin"), { ...sample, headers: {} });
    expect(answer.status).toBe(428);
    expect(await answer.json()).toMatchObject({
      error: { code: "precondition_required", param: "If-Match" },
    });
    expect(await gateway.changes.list({ organizationId: "acme" })).toEqual(before);
    for (const status of [200, 412])
      expect((await call(grantOf("admin"), sample)).status).toBe(status);
  },
);

const ofLimits = routes.filter(([, { path }]) => /^\/(?:budgets|rate-limits)\/\{id\}/.test(path));

describe.each([
  ["every organization", {}],
  ["another organization too", { organization: ["acme", "rival"] }],
])("a budget or rate limit of %s", (_, scope) => {
  it.each(ofLimits)("is unknown to %s of one organization", async (name, route) => {
    const world = await createWorld();
    const { call, acme, gateway } = world;
    const [budget, rate] = [
      { limit: { usd: 5 }, period: "month" },
      { limit: { requests: 9 } },
    ] as const;
    await gateway.budgets.remove({ id: acme.budget });
    await gateway.rateLimits.remove({ id: acme.rateLimit });
    await gateway.budgets.create({ id: acme.budget, scope, ...budget });
    await gateway.rateLimits.create({ id: acme.rateLimit, scope, ...rate, per: "minute" });
    const { id: raise } = await gateway.budgets.raise({
      id: acme.budget,
      by: { usd: 1 },
      until: "2030-01-01",
    });
    const before = await changesOf(world);
    const shared = { ...acme, raise };
    const answer = await call(grantOf("admin"), sampleOf([name, route], shared));
    const nowhere = await call(grantOf("admin"), sampleOf([name, route], unknown));
    expect(answer.status).toBe(404);
    expect(await anonymous(answer, shared)).toBe(await anonymous(nowhere, unknown));
    expect(await changesOf(world)).toEqual(before);
    expect(await gateway.budgets.raises({ id: acme.budget })).toHaveLength(1);
  });
});
