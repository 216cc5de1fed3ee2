import { adminHandler, isReplayed, remoteAdministration } from "@tollgate/admin";
import {
  type ActivityFilter,
  type Administration,
  type ChangeFilter,
  createRandomIds,
  everyOrganization,
  type List,
  type Mountable,
} from "@tollgate/core";
import { etagOf } from "@tollgate/core/administration";
import { definePolicy, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { createTestGateway, scriptedProvider, type TestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Mounting, ServedBinding } from "./binding-contract/binding.ts";

/** Where an administration under test comes from. */
export interface AdministrationSource {
  /** A new store for each test. Default: in memory. */
  readonly open?: () => Store | Promise<Store>;
  /** Reaches the administration over HTTP through this binding. Default: in process. */
  readonly serve?: (admin: Mountable, mounting: Mounting) => Promise<ServedAdministration>;
}

/** An admin API that can be called. */
export interface ServedAdministration extends ServedBinding {
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

interface Subject extends TestGateway {
  readonly administration: Administration;
  readonly organizationId: string;
}

const token = "token-of-the-operator";
const actor = "operator";

/**
 * Declares the conformance suite of the administration (peer: vitest): the same calls, in process or over HTTP, have the same
 * results as the gateway's own.
 */
export function describeAdministration(name: string, source: AdministrationSource = {}): void {
  describe(`the administration: ${name}`, () => {
    const subject = () => openSubject(source);
    /** The actor of a change: an argument in process, and who signed in over HTTP. */
    const by = source.serve === undefined ? { actor } : {};
    it("creates, reads, changes, rotates and revokes keys", async () => {
      const { administration, gateway, organizationId } = await subject();
      const { keys } = administration;
      const made = await keys.create({ organizationId, userId: "ada", label: "ci", ...by });
      expect(made.secret).toMatch(/^tg_/);
      const { id } = made.key;
      const reference = { organizationId, id };
      expect(made.key).toEqual(await gateway.keys.get(reference));
      expect(await keys.get(reference)).toEqual(made.key);
      const change = { ...reference, label: "cd", models: ["test/*/*"], ...by };
      expect(await keys.update(change)).toMatchObject({ label: "cd", models: ["test/*/*"] });
      const before = await administration.changes.list({ organizationId });
      expect(await keys.update({ ...reference, ...by })).toEqual(await keys.get(reference));
      expect(await administration.changes.list({ organizationId })).toEqual(before);
      const rotated = await keys.rotate({ ...reference, overlap: "1h", ...by });
      expect(rotated.secret).not.toBe(made.secret);
      await expectSame((one) => one.keys.list({ organizationId, live: true }, { limit: 1 }));
      expect((await keys.revoke({ ...reference, ...by })).revokedAt).not.toBeNull();
      const other = await keys.create({ organizationId, userId: "ada", label: "x", ...by });
      const ofUser = { organizationId, userId: "ada", ...by };
      expect(await keys.revoke(ofUser)).toEqual({ revoked: 1 });
      const { revokedAt } = await keys.get({ organizationId, id: other.key.id });
      expect(revokedAt).not.toBeNull();
      expect(await keys.revoke(ofUser)).toEqual({ revoked: 0 });
      await expectSame((one) => one.keys.list({ organizationId, userId: "ada", live: false }));
      const { data } = await administration.changes.list({ organizationId });
      expect(data.slice(0, -1).map((change) => change.actor)).toEqual(
        data.slice(0, -1).map(() => actor),
      );

      async function expectSame<Row>(list: (of: Administration) => List<Row>) {
        expect(await everyPage(list(administration))).toEqual(await everyPage(list(gateway)));
      }
    });

    it("creates, lists and revokes tokens for the admin API", async () => {
      const { administration, gateway } = await subject();
      const { adminTokens } = administration;
      const rights = { role: "operator", organizations: ["acme", "rival"] } as const;
      const made = await adminTokens.create({ label: "Ada", ...rights, ...by });
      const { id } = made.token;
      expect(made.token).toMatchObject({ label: "Ada", ...rights, transcripts: null });
      expect(made.token).toEqual(await gateway.adminTokens.get({ id }));
      expect((await gateway.findAdminToken(made.secret))?.id).toBe(id);
      const used = await adminTokens.get({ id });
      expect(used.lastUsedAt).not.toBeNull();
      const transcripts = { upTo: "D1_INTERNAL" };
      await adminTokens.create({ label: "Bo", ...rights, transcripts, ...by });
      expect(await everyPage(adminTokens.list({ limit: 1 }))).toEqual(
        await everyPage(gateway.adminTokens.list()),
      );
      expect((await adminTokens.revoke({ id, ...by })).revokedAt).not.toBeNull();
      expect(await gateway.findAdminToken(made.secret)).toBeNull();
      for (const label of ["", "a\n", "\ud800"])
        await expect(adminTokens.create({ label, ...rights, ...by })).rejects.toMatchObject({
          code: "invalid_argument",
          param: "label",
        });
      const again = await adminTokens.revoke({ id, ...by });
      expect(again).toEqual(await adminTokens.get({ id }));
      await expect(adminTokens.get({ id: "nobody" })).rejects.toMatchObject({
        code: "admin_token_not_found",
      });
      const changes = await everyPage(
        administration.changes.list({ organizationId: everyOrganization }),
      );
      const ofTokens = changes.filter(({ kind }) => kind.startsWith("admin_token"));
      expect(ofTokens.map((change) => [change.kind, change.actor])).toEqual([
        ["admin_token.revoked", actor],
        ["admin_token.created", actor],
        ["admin_token.created", actor],
      ]);
      expect(ofTokens.map(({ subject }) => subject)).toContain(id);
      expect(JSON.stringify(changes)).not.toContain(made.secret.slice(8));
    });

    it("creates, reads, changes, raises and removes budgets and rate limits", async () => {
      const { administration, gateway, organizationId } = await subject();
      const { budgets, rateLimits } = administration;
      const scope = { organization: organizationId };
      const budget = { id: "team/ä b", scope, limit: { usd: "5" }, period: "month" } as const;
      await expect(budgets.create({ ...budget, ...by })).rejects.toMatchObject({ param: "id" });
      const id = "team/a?b&c%20";
      expect(await budgets.create({ ...budget, id, ...by })).toEqual(
        await gateway.budgets.get({ id }),
      );
      await budgets.update({ ...budget, id, mode: "soft", warnAt: [], ...by });
      expect(await budgets.get({ id })).toMatchObject({
        mode: "soft",
        warnAt: [],
        origin: "created",
      });
      const until = "2030-01-01";
      const raise = await budgets.raise({ id, by: { usd: 1 }, until, ...by });
      expect(await budgets.raises({ id })).toEqual([raise]);
      const stale = { code: "precondition_failed" };
      const again = { id, by: { usd: 1 }, until, ifMatch: "stale", ...by };
      await expect(budgets.raise(again)).rejects.toMatchObject(stale);
      const cancellation = { id, raiseId: raise.id, ...by };
      await expect(
        budgets.cancelRaise({ ...cancellation, ifMatch: "stale" }),
      ).rejects.toMatchObject(stale);
      expect(await budgets.raises({ id })).toEqual([raise]);
      await budgets.cancelRaise({ ...cancellation, ifMatch: etagOf(await budgets.get({ id })) });
      expect(await budgets.raises({ id })).toEqual([]);
      expect(await everyPage(budgets.status({ id, at: "2026-01-01" }))).toEqual([]);
      const rate = { id: "rate", scope, limit: { requests: 9 }, per: "second" } as const;
      const limit = await rateLimits.create({ ...rate, ...by });
      expect(limit).toEqual(await gateway.rateLimits.get({ id: "rate" }));
      expect(await rateLimits.update({ ...rate, burst: 3, ...by })).toMatchObject({ burst: 3 });
      expect(await everyPage(rateLimits.status({ id: "rate" }))).toEqual([]);
      const lists = (one: Administration) =>
        Promise.all([
          everyPage(one.budgets.list({ organizationId })),
          everyPage(one.rateLimits.list()),
        ]);
      expect(await lists(administration)).toEqual(await lists(gateway));
      await budgets.remove({ id, ...by });
      await rateLimits.remove({ id: "rate", ...by });
      await expect(budgets.get({ id })).rejects.toMatchObject({ code: "budget_not_found" });
      expect(await everyPage(rateLimits.list())).toEqual([]);
    });

    it("changes a record only as it was read, if asked to", async () => {
      const { administration, organizationId } = await subject();
      const { keys, budgets, rateLimits, connections } = administration;
      const stale = { code: "precondition_failed" };
      const { key } = await keys.create({ organizationId, userId: "ada", label: "ci", ...by });
      const ofKey = { organizationId, id: key.id, ...by };
      const ifMatch = etagOf(key);
      const changed = await keys.update({ ...ofKey, label: "cd", ifMatch });
      await expect(keys.update({ ...ofKey, label: "ce", ifMatch })).rejects.toMatchObject(stale);
      await expect(keys.rotate({ ...ofKey, ifMatch })).rejects.toMatchObject(stale);
      const rotated = await keys.rotate({ ...ofKey, ifMatch: etagOf(changed) });
      await expect(keys.revoke({ ...ofKey, ifMatch })).rejects.toMatchObject(stale);
      expect(await keys.get(ofKey)).toEqual(rotated.key);
      await keys.revoke({ ...ofKey, ifMatch: etagOf(rotated.key) });

      const scope = { organization: organizationId };
      const budget = { id: "b", scope, limit: { usd: "5" }, period: "month", ...by } as const;
      const made = await budgets.create(budget);
      const raised = { ...budget, limit: { usd: 6 } };
      const second = await budgets.update({ ...raised, ifMatch: etagOf(made) });
      const late = { ...budget, limit: { usd: 7 }, ifMatch: etagOf(made) };
      await expect(budgets.update(late)).rejects.toMatchObject(stale);
      const removal = { id: "b", ...by, ifMatch: etagOf(made) };
      await expect(budgets.remove(removal)).rejects.toMatchObject(stale);
      expect(await budgets.get({ id: "b" })).toEqual(second);
      await budgets.remove({ ...removal, ifMatch: etagOf(second) });

      const rate = { id: "r", scope, limit: { requests: 9 }, per: "second", ...by } as const;
      const limit = await rateLimits.create(rate);
      await rateLimits.update({ ...rate, burst: 3, ifMatch: etagOf(limit) });
      const again = { ...rate, burst: 4, ifMatch: etagOf(limit) };
      await expect(rateLimits.update(again)).rejects.toMatchObject(stale);
      const ofRate = { id: "r", ...by, ifMatch: etagOf(limit) };
      await expect(rateLimits.remove(ofRate)).rejects.toMatchObject(stale);

      const place = { organizationId, gateway: "own", ...by };
      await expect(
        connections.set({ ...place, apiKey: "one", ifMatch: "none" }),
      ).rejects.toMatchObject(stale);
      const set = await connections.set({ ...place, apiKey: "one" });
      await expect(connections.remove({ ...place, ifMatch: "none" })).rejects.toMatchObject(stale);
      await connections.remove({ ...place, ifMatch: etagOf(set) });
    });

    it("makes one of two changes that arrive at the same moment and expect the same record", async () => {
      const { administration, organizationId } = await subject();
      const { keys, budgets, connections } = administration;
      const one = async (changes: readonly (() => Promise<unknown>)[]) => {
        const ended = await Promise.allSettled(changes.map((change) => change()));
        const codes = ended.map((end) => (end.status === "fulfilled" ? "made" : end.reason.code));
        expect(codes.toSorted()).toEqual(["made", "precondition_failed"]);
      };
      const { key } = await keys.create({ organizationId, userId: "ada", label: "ci", ...by });
      const ofKey = { organizationId, id: key.id, ifMatch: etagOf(key), ...by };
      await one([() => keys.rotate(ofKey), () => keys.rotate(ofKey)]);
      const scope = { organization: organizationId };
      const budget = { id: "b", scope, period: "month", ...by } as const;
      const ifMatch = etagOf(await budgets.create({ ...budget, limit: { usd: 5 } }));
      const limitTo = (usd: number) => () => budgets.update({ ...budget, limit: { usd }, ifMatch });
      await one([limitTo(6), limitTo(7)]);
      const place = { organizationId, gateway: "own", ...by };
      const set = etagOf(await connections.set({ ...place, apiKey: "one" }));
      await one(
        ["two", "three"].map((apiKey) => () => connections.set({ ...place, apiKey, ifMatch: set })),
      );
    });

    it("creates a budget or a rate limit once, and returns it to an equal creation", async () => {
      const { administration, organizationId } = await subject();
      const { budgets, rateLimits, changes } = administration;
      const scope = { organization: organizationId };
      const budget = { id: "b", scope, limit: { usd: "5" }, period: "month", ...by } as const;
      const rate = { id: "r", scope, limit: { requests: 9 }, per: "second", ...by } as const;
      const made = await budgets.create(budget);
      expect(await budgets.create(budget)).toEqual(made);
      const limited = await rateLimits.create(rate);
      expect(await rateLimits.create(rate)).toEqual(limited);
      const other = { code: "budget_exists", param: "id" };
      await expect(budgets.create({ ...budget, limit: { usd: 6 } })).rejects.toMatchObject(other);
      await expect(budgets.create({ ...budget, id: "r" })).rejects.toMatchObject(other);
      await expect(rateLimits.create({ ...rate, burst: 2 })).rejects.toMatchObject({
        code: "rate_limit_exists",
      });
      const kind = ["budget.created", "rate_limit.created"] as const;
      expect(await everyPage(changes.list({ organizationId, kind }))).toHaveLength(2);
    });

    it("creates a record once for equal creations with one idempotency key, even at the same moment", async () => {
      const { administration, gateway, organizationId, chat } = await subject();
      const { keys, adminTokens, budgets, steps, changes } = administration;
      await (await gateway.fetch(chat())).text();
      const [step] = (await gateway.steps.list({ organizationId })).data;
      const scope = { organization: organizationId };
      await budgets.create({ id: "b", scope, limit: { usd: 5 }, period: "month", ...by });
      const once = { idempotencyKey: "creation-1", ...by };
      const ofKey = { organizationId, userId: "ada", label: "ci", models: ["test/*/*"], ...once };
      const ofToken = { label: "Ada", role: "viewer", organizations: "all", ...once } as const;
      const raise = { id: "b", by: { usd: 1 }, until: "2030-01-01", ...once };
      const ofStep = { organizationId, id: step?.id ?? "", reason: "an invoice", ...once };
      const creations = [
        [() => keys.create(ofKey), () => keys.create({ ...ofKey, models: null })],
        [
          () => adminTokens.create(ofToken),
          () => adminTokens.create({ ...ofToken, role: "operator" }),
        ],
        [() => budgets.raise(raise), () => budgets.raise({ ...raise, by: { usd: 2 } })],
        [
          () => steps.correct({ ...ofStep, costNanoUsd: 7 }),
          () => steps.correct({ ...ofStep, costNanoUsd: 8 }),
        ],
      ] as const;
      for (const [create, createOther] of creations) {
        const both = await Promise.all([create(), create()]);
        const made = both.find((one) => !isReplayed(one));
        const repeat = both.find(isReplayed);
        expect(both).toContain(made);
        const isSecret = made !== undefined && "secret" in made;
        if (isSecret) expect(made.secret).toMatch(/^tga?_/);
        expect(repeat).toEqual(isSecret ? { ...made, secret: null } : made);
        const late = await create();
        expect([late, isReplayed(late)]).toEqual([repeat, true]);
        const mismatch = { code: "idempotency_mismatch", status: 422 };
        await expect(createOther()).rejects.toMatchObject(mismatch);
      }
      const { key } = await keys.create({ ...ofKey, idempotencyKey: "creation-2" });
      const own = await everyPage(keys.list({ organizationId, userId: "ada" }));
      expect(own[0]).toEqual(key);
      expect([own, await budgets.raises({ id: "b" })].map((rows) => rows.length)).toEqual([2, 1]);
      const kinds = (await everyPage(changes.list({ organizationId: everyOrganization })))
        .map(({ kind }) => kind)
        .filter((kind) => ["admin_token.created", "budget.raised", "correction"].includes(kind));
      expect(kinds).toEqual(["correction", "budget.raised", "admin_token.created"]);
      const invalid = { ...ofKey, idempotencyKey: "a".repeat(256) };
      await expect(keys.create(invalid)).rejects.toMatchObject({ param: "idempotencyKey" });
    });

    it("sets and removes connections without showing a credential", async () => {
      const { administration, organizationId } = await subject();
      const { connections } = administration;
      const reference = { organizationId, gateway: "own" };
      const set = await connections.set({ ...reference, apiKey: "canary-credential", ...by });
      expect(await connections.get(reference)).toEqual(set);
      expect(await everyPage(connections.list({ organizationId: everyOrganization }))).toEqual([
        set,
      ]);
      expect(JSON.stringify(set)).not.toContain("canary-credential");
      expect(await connections.reseal(by)).toEqual({ resealed: 0, failed: 0 });
      await connections.remove({ ...reference, ...by });
      const gone = { code: "connection_not_found" };
      await expect(connections.get(reference)).rejects.toMatchObject(gone);
    });

    it("lists, sums up, exports, corrects and reprices Steps as the gateway does", async () => {
      const { administration, gateway, organizationId, chat } = await subject();
      for (const team of ["red", "blue"])
        await (await gateway.fetch(chat({ metadata: { team } }))).text();
      const filter = {
        organizationId,
        metadata: { team: "red" },
        dataClass: { upTo: "D1_INTERNAL" },
      };
      const ofAll: ActivityFilter = { organizationId: everyOrganization, gateway: ["test", "own"] };
      for (const asked of [filter, ofAll]) {
        // One after the other: an operator may run one summary or export at a time.
        const shown = async (one: Administration) => [
          await everyPage(one.steps.list(asked, { limit: 1 })),
          await everyPage(one.activity.list(asked)),
          await one.steps.summarize(asked, ["model", "user"]),
          await one.activity.summarize(asked, []),
          await textOf(one.steps.export(asked, { format: "csv" })),
          await textOf(one.activity.export(asked, { format: "jsonl" })),
        ];
        expect(await shown(administration)).toEqual(await shown(gateway));
      }
      const [step] = (await administration.steps.list(filter)).data;
      const reference = { organizationId, id: step?.id ?? "" };
      const correction = { ...reference, costNanoUsd: 7, reason: "an invoice", ...by };
      const corrected = await administration.steps.correct(correction);
      expect(corrected).toEqual(await gateway.steps.get(reference));
      expect(corrected).toMatchObject({ costNanoUsd: 7, attempts: [{ corrections: [{ actor }] }] });
      const prices = { "test/tollgate/scripted": { input: "3", output: "4" } };
      const repriced = (one: Administration) =>
        everyPage(one.steps.reprice({ organizationId }, { prices }));
      expect(await repriced(administration)).toEqual(await repriced(gateway));
    });

    it("reads decisions, Sessions and their content, and records who read it", async () => {
      const { administration, gateway, organizationId, chat } = await subject();
      await (await gateway.fetch(chat())).text();
      await gateway.keys.create({ organizationId: "rival", userId: "eve", label: "other" });
      // Tokens belong to no organization.
      await gateway.adminTokens.create({ label: "Ada", role: "viewer", organizations: "all" });
      const { decisions, sessions, steps } = administration;
      const filter = { organizationId };
      const [decision] = await everyPage(decisions.list(filter));
      expect(decision).toEqual(await gateway.decisions.get({ ...filter, id: decision?.id ?? "" }));
      expect(await textOf(decisions.export(filter, { format: "csv" }))).toEqual(
        await textOf(gateway.decisions.export(filter, { format: "csv" })),
      );
      const everywhere: ChangeFilter = { organizationId: everyOrganization };
      for (const [asked, format] of [
        [filter, "csv"],
        [everywhere, "jsonl"],
      ] as const) {
        const exported = await textOf(administration.changes.export(asked, { format }));
        expect(exported).toEqual(await textOf(gateway.changes.export(asked, { format })));
        expect(exported.trimEnd().split("\n")).toHaveLength(
          (await everyPage(gateway.changes.list(asked))).length + (format === "csv" ? 1 : 0),
        );
      }
      const [session] = await everyPage(sessions.list(filter));
      const ofSession = { organizationId, id: session?.id ?? "" };
      expect(session).toEqual(await gateway.sessions.get(ofSession));
      const [step] = await everyPage(steps.list(filter));
      const ofStep = { organizationId, id: step?.id ?? "" };
      const transcript = await sessions.transcript({ ...ofSession, ...by });
      const content = await steps.content({ ...ofStep, ...by });
      const read = await everyPage(
        administration.changes.list({ organizationId, kind: "transcript.read" }),
      );
      expect(read.map((change) => [change.subject, change.actor])).toEqual([
        [step?.id, actor],
        [session?.id, actor],
      ]);
      expect(transcript).toEqual(await gateway.sessions.transcript(ofSession));
      expect(content).toEqual(await gateway.steps.content(ofStep));
    });

    it("reads a transcript in parts, and the Sessions that a Session comes from", async () => {
      const { administration, gateway, organizationId, chat } = await subject();
      const { sessions, changes } = administration;
      const user = (content: string) => ({ role: "user", content }) as const;
      const ask = async (contents: readonly string[], session_id?: string) => {
        const messages = contents.flatMap((content, at) =>
          at === contents.length - 1
            ? [user(content)]
            : [user(content), { role: "assistant", content: "OK" } as const],
        );
        const named = session_id === undefined ? {} : { session_id };
        await (await gateway.fetch(chat({ messages, ...named }))).text();
        const [newest] = (await gateway.sessions.list({ organizationId })).data;
        return newest?.id ?? "";
      };
      // Its first request has three messages.
      const first = await ask(["a", "b"]);
      await ask(["a", "b", "c"], first);
      const second = await ask(["a", "b", "d"], first);
      await ask(["a", "b", "d", "e"], second);
      const third = await ask(["a", "b", "d", "f"], second);
      const reference = { organizationId, id: third };
      const lineage = await everyPage(sessions.lineage(reference, { limit: 1 }));
      expect(lineage.map(({ id, commonLength }) => [id, commonLength])).toEqual([
        [third, 6],
        [second, 4],
        [first, 0],
      ]);
      expect(await sessions.lineage(reference, { limit: 2 })).toMatchObject({
        data: [{ id: third }, { id: second }],
        nextCursor: expect.any(String),
      });
      const read = async (part: { readonly from?: number; readonly count?: number }) => {
        const entries = await sessions.transcript({ ...reference, ...part, ...by });
        const lengths = entries.map(({ messages }) => messages?.length);
        expect(entries.map(({ count }) => count)).toEqual(lengths);
        const positions = entries.flatMap(({ from, count }) =>
          Array.from({ length: count }, (_, at) => from + at),
        );
        return [
          positions,
          entries.flatMap(({ messages }) => messages?.map(({ content }) => content)),
        ];
      };
      const whole = ["a", "OK", "b", "OK", "d", "OK", "f", "OK"];
      expect(await read({})).toEqual([[0, 1, 2, 3, 4, 5, 6, 7], whole]);
      expect(await read({ from: 1, count: 2 })).toEqual([[1, 2], whole.slice(1, 3)]);
      expect(await read({ from: 2, count: 3 })).toEqual([[2, 3, 4], whole.slice(2, 5)]);
      expect(await read({ from: 7 })).toEqual([[7], whole.slice(7)]);
      expect(await read({ from: 8 })).toEqual([[], []]);
      const readings = await everyPage(changes.list({ organizationId, kind: "transcript.read" }));
      expect(readings.map(({ facts }) => [facts["from"], facts["count"]]).reverse()).toEqual([
        [0, 8],
        [1, 2],
        [2, 3],
        [7, 1],
        [8, 0],
      ]);
      for (const part of [{ from: -1 }, { count: 0 }, { count: 1_001 }])
        await expect(sessions.transcript({ ...reference, ...part, ...by })).rejects.toMatchObject({
          code: "invalid_argument",
          param: Object.keys(part)[0],
        });
      const unknown = { code: "session_not_found" };
      await expect(sessions.lineage({ organizationId, id: "nobody" })).rejects.toMatchObject(
        unknown,
      );
      await expect(sessions.lineage({ organizationId: "rival", id: third })).rejects.toMatchObject(
        unknown,
      );
    });

    it("shows the models, the policy and the status of the process", async () => {
      const { administration, gateway } = await subject();
      const models = await everyPage(administration.models({ limit: 1 }));
      expect(models).toEqual(await everyPage(gateway.models()));
      expect(models).toContainEqual({
        id: "test/tollgate/scripted",
        connection: "platform",
        price: {
          source: "custom",
          version: null,
          rates: { input: 1_000_000_000, output: 2_000_000_000 },
          request: 0,
        },
        maxOutputTokens: null,
        reasons: null,
      });
      const policy = await administration.policy();
      expect(policy).toEqual(await gateway.policy());
      const rule = { effect: "permit", id: "all", match: { source: "api" }, options: {} };
      expect(policy.rules).toEqual([rule]);
      expect(await administration.status()).toMatchObject({ openSteps: 0, closing: false });
    });

    it("recovers, sweeps and reconciles", async () => {
      const { administration, gateway, organizationId, chat, clock } = await subject();
      await (await gateway.fetch(chat())).text();
      await clock.advance("3h");
      await gateway.rollUp();
      const compared = { steps: 1, differences: [], isCut: false, repaired: 0 };
      const everywhere: ChangeFilter = { organizationId: everyOrganization };
      for (const scope of [{ organizationId }, everywhere])
        expect(await administration.reconcileUsage(scope)).toEqual(compared);
      const range = { organizationId, from: "2020-01-01", to: "2020-01-02", repair: true };
      expect(await administration.reconcileUsage(range)).toEqual({ ...compared, steps: 0 });
      expect([await administration.recover(), await administration.sweep()]).toEqual([0, 0]);
      expect(await administration.budgets.reconcile()).toEqual({ counters: 0, drift: [] });
    });

    it("rejects what the gateway rejects, with the same code and path", async () => {
      const { administration, gateway, organizationId } = await subject();
      const id = "00000000-0000-7000-8000-000000000000";
      const calls: readonly ((one: Administration) => PromiseLike<unknown>)[] = [
        ({ keys }) => keys.get({ organizationId, id }),
        ({ steps }) => steps.get({ organizationId, id }),
        ({ sessions }) => sessions.get({ organizationId, id }),
        ({ decisions }) => decisions.get({ organizationId, id }),
        ({ rateLimits }) => rateLimits.get({ id }),
        ({ steps }) => steps.list({ organizationId, user: [] }),
        ({ steps }) => steps.list({ organizationId }, { limit: 0 }),
        ({ keys }) => keys.create({ organizationId, userId: "", label: "a" }),
        ({ budgets }) => budgets.create({ id: "b", limit: { usd: -1 }, period: "day" }),
        ({ connections }) => connections.set({ organizationId, gateway: "test", apiKey: "a" }),
      ];
      const refusal = (call: PromiseLike<unknown>) =>
        call.then(
          () => "accepted",
          ({ code, param, message }) => ({ code, param, message }),
        );
      for (const call of calls)
        expect(await refusal(call(administration))).toEqual(await refusal(call(gateway)));
    });
  });
}

async function openSubject({ open, serve }: AdministrationSource): Promise<Subject> {
  const test = await createTestGateway({
    ids: createRandomIds(),
    policy: definePolicy({ rules: [permit("all", { source: "api" })] }),
    providers: { own: { ...scriptedProvider(), connection: "customer" } },
    ...(open === undefined ? {} : { store: await open() }),
  });
  const { gateway, key } = test;
  const subject = { ...test, organizationId: key.organizationId };
  onTestFinished(() => gateway.close());
  if (serve === undefined) return { ...subject, administration: gateway };
  const admin = adminHandler(gateway, {
    authenticateAdmin: (request) =>
      request.headers.get("authorization") === `Bearer ${token}`
        ? { actor, organizations: "all", role: "admin", transcripts: { upTo: "D3_RESTRICTED" } }
        : null,
  });
  const served = await serve(admin, { prefix: "/ops", writeStall: 30_000 });
  onTestFinished(async () => {
    await served.close();
    await admin.close();
  });
  const { url, fetch: fetchWith = fetch } = served;
  const administration = remoteAdministration({ url: `${url}/ops`, token, fetch: fetchWith });
  return { ...subject, administration };
}

async function everyPage<Row>(list: List<Row>): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for await (const row of list) rows.push(row);
  return rows;
}

async function textOf(file: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of file) text += decoder.decode(piece, { stream: true });
  return text;
}
