import {
  type ChangeRecord,
  createGateway,
  createRandomIds,
  everyOrganization,
} from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";

const policyOf = (version: string) => definePolicy({ version, rules: [permit("all")] });
const actor = "ops@example";
const secrets = { current: "k1", keys: { k1: Buffer.alloc(32, 1).toString("base64") } };
const month = { limit: { usd: 5 }, period: "month", mode: "hard" } as const;

describe.each(stores)("changes on %s", (_, open) => {
  it("contain nothing of an update that changes nothing", async () => {
    const { gateway, key } = await createTestGateway({ store: open() });
    const { organizationId, id } = key;
    expect(await gateway.keys.update({ organizationId, id })).toEqual(
      await gateway.keys.get({ organizationId, id }),
    );
    const { data } = await gateway.changes.list({ organizationId, kind: "key.updated" });
    expect(data).toEqual([]);
  });

  it("show the actor and the subject of every administrative write, newest first", async () => {
    const { gateway, key, chat } = await createTestGateway({
      store: open(),
      secrets,
      key: { actor },
      providers: { own: { ...scriptedProvider(), connection: "customer" } },
    });
    const { organizationId } = key;
    const own = { organizationId, actor };
    const scope = { organization: organizationId };
    await (await gateway.fetch(chat())).text();
    const { data } = await gateway.steps.list({ organizationId });
    const id = data[0]?.id ?? "";
    await gateway.keys.update({ ...own, id: key.id, label: "other" });
    await gateway.keys.rotate({ ...own, id: key.id });
    await gateway.connections.set({ ...own, gateway: "own", apiKey: "secret-of-theirs" });
    await gateway.connections.remove({ ...own, gateway: "own" });
    await gateway.budgets.create({ id: "team", scope, ...month, actor });
    await gateway.budgets.update({ id: "team", scope, ...month, mode: "soft", actor });
    await gateway.budgets.remove({ id: "team", actor });
    await gateway.budgets.create({ id: "everyone", scope: {}, ...month, actor });
    await gateway.steps.correct({ ...own, id, costNanoUsd: 1, reason: "an invoice" });
    await gateway.keys.revoke({ ...own, id: key.id });

    const shown = ({ kind, subject, actor: by }: ChangeRecord) => [kind, subject, by];
    const page = await gateway.changes.list({ organizationId });
    expect(page.data.map(shown)).toEqual([
      ["key.revoked", key.id, actor],
      ["correction", id, actor],
      ["budget.removed", "team", actor],
      ["budget.updated", "team", actor],
      ["budget.created", "team", actor],
      ["connection.removed", expect.any(String), actor],
      ["connection.set", expect.any(String), actor],
      ["key.rotated", key.id, actor],
      ["key.updated", key.id, actor],
      ["key.created", key.id, actor],
    ]);
    expect(JSON.stringify(page.data)).not.toMatch(/secret-of-theirs|an invoice|tg_/);
    const everyone = await gateway.changes.list({ organizationId: everyOrganization });
    expect(everyone.data.find(({ subject }) => subject === "everyone")?.organizationId).toBeNull();
    const rows = [];
    for await (const row of gateway.changes.list({ organizationId }, { limit: 3 })) rows.push(row);
    expect(rows).toEqual(page.data);
    const removed = await gateway.changes.list({ organizationId, kind: "budget.removed" });
    expect(removed.data).toMatchObject([
      { at: "2026-01-01T00:00:00.000Z", facts: { budget: { limit: 5_000_000_000 } } },
    ]);
  });

  it("show each change of policy once, however many gateways open with it", async () => {
    const store = open();
    const opening = async (version: string) => {
      const shared = { ...store, close: async () => {} };
      const { gateway } = await createTestGateway({
        store: shared,
        policy: policyOf(version),
        ids: createRandomIds(),
      });
      return gateway;
    };
    for (const version of ["1", "1", "2"]) await (await opening(version)).close();
    const gateway = await opening("2");
    const { data } = await gateway.changes.list({
      organizationId: everyOrganization,
      kind: "policy.changed",
    });
    expect(data.map(({ subject, facts }) => [facts["before"], subject])).toEqual([
      ["1", "2"],
      [null, "1"],
    ]);
  });

  it("show a change of policy once a gateway serves requests, not if it only administers", async () => {
    const gateway = createGateway({
      store: open(),
      providers: { test: scriptedProvider() },
      policy: policyOf("1"),
    });
    const changes = () => gateway.changes.list({ organizationId: everyOrganization });
    expect((await changes()).data).toEqual([]);
    expect((await gateway.fetch("http://in-process/v1/models")).status).toBe(401);
    expect((await changes()).data).toMatchObject([{ kind: "policy.changed", subject: "1" }]);
    await gateway.close();
  });

  it("are exported with every column", async () => {
    const { gateway, key } = await createTestGateway({ store: open(), key: { actor } });
    const { organizationId } = key;
    const { data } = await gateway.changes.list({ organizationId });
    const file = gateway.changes.export({ organizationId }, { format: "csv" });
    const [{ id = "", facts = {} } = {}] = data;
    const quoted = JSON.stringify(facts).replaceAll('"', '""');
    expect(await new Response(file).text()).toBe(
      [
        "id,at,organizationId,kind,actor,subject,facts\r\n",
        `${id},2026-01-01T00:00:00.000Z,${organizationId},key.created,${actor},${key.id},"${quoted}"\r\n`,
      ].join(""),
    );
  });

  it("refuse unknown filters", async () => {
    const { gateway, key } = await createTestGateway({ store: open() });
    const { organizationId } = key;
    const refused = { code: "invalid_argument" };
    // @ts-expect-error an unknown member
    await expect(gateway.changes.list({ organizationId, key: "k" })).rejects.toMatchObject(refused);
    for (const wrong of [{ from: "soon" }, { organizationId: "" }])
      await expect(gateway.changes.list({ organizationId, ...wrong })).rejects.toMatchObject(
        refused,
      );
  });

  it("refuse impossible values, like every list", async () => {
    const { gateway, key } = await createTestGateway({ store: open() });
    const { organizationId } = key;
    const refusing = async (name: string, list: PromiseLike<unknown>) =>
      expect(list, name).rejects.toMatchObject({
        code: "invalid_argument",
        param: expect.stringMatching(new RegExp(`^${name}(?:\\[\\d\\])?$`)),
      });
    for (const value of ["nope", "decision", "constructor", "", ["completed", "nope"]]) {
      const of = (name: string) => Object.assign({ organizationId }, { [name]: value });
      await refusing("kind", gateway.changes.list(of("kind")));
      for (const name of ["outcome", "endpoint", "connection"])
        await refusing(name, gateway.steps.list(of(name)));
      await refusing("connection", gateway.decisions.list(of("connection")));
      await refusing("endpoint", gateway.activity.summarize(of("endpoint"), []));
    }
  });
});

it.each([
  ["k1", "k1"],
  [{ id: "k1" }, "k1"],
  [{ id: 7 }, null],
  [{}, null],
  [7, null],
  [null, null],
])("a change whose record has %j for its subject states %j", async (fact, subject) => {
  const store = memoryStore();
  const edited: Store = {
    ...store,
    evidence: {
      ...store.evidence,
      async changes(query, paging) {
        const page = await store.evidence.changes(query, paging);
        const meta = JSON.stringify({ key: fact });
        return { ...page, data: page.data.map((leaf) => ({ ...leaf, meta })) };
      },
    },
  };
  const { gateway, key } = await createTestGateway({ store: edited });
  const { data } = await gateway.changes.list({ organizationId: key.organizationId });
  expect(data).toMatchObject([{ kind: "key.created", subject }]);
});
