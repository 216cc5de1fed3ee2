import { everyOrganization, type StepFilter } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, manualClock } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";

const down = new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 });
const policy = definePolicy({ rules: [permit("all", {}, { fallbacks: ["spare/a/two"] })] });
const prices = {
  "test/a/one": { input: 1, output: 1 },
  "spare/a/two": { input: 2, output: 2 },
  "other/b/three": { input: 3, output: 3 },
};

describe.each(stores)("summaries on %s", (_, open) => {
  /** A call that falls back, one that doesn't, one by a colleague, and one by another organization. */
  async function spend() {
    const test = await createTestGateway({
      store: open(),
      clock: manualClock("2026-01-01T23:59:50Z"),
      policy,
      prices,
      gateways: ["other"],
      retries: { max: 0 },
    });
    const { gateway, provider, clock, chat, createKey } = test;
    provider.fail(down);
    await (await gateway.fetch(chat({ model: "test/a/one" }))).text();
    await clock.advance("20s");
    await (await gateway.fetch(chat({ model: "other/b/three" }))).text();
    const colleague = await createKey({ userId: "user-2", label: "second" });
    await (await gateway.fetch(colleague.chat({ model: "other/b/three" }))).text();
    const stranger = await createKey({ organizationId: "organization-2" });
    await (await gateway.fetch(stranger.chat({ model: "other/b/three" }))).text();
    return { ...test, colleague, stranger, organizationId: test.key.organizationId };
  }

  it("count each attempt's cost with its own model, and have the same total in every dimension", async () => {
    const { gateway, organizationId } = await spend();
    const rows = await gateway.steps.summarize({ organizationId }, ["gateway", "model"]);
    expect(
      rows.map(({ gateway: of, model, steps, attempts }) => [of, model, steps, attempts]),
    ).toEqual([
      ["other", "other/b/three", 2, 2],
      ["spare", "spare/a/two", 1, 1],
      ["test", "test/a/one", 1, 1],
    ]);
    let total = 0;
    for await (const step of gateway.steps.list({ organizationId })) total += step.costNanoUsd ?? 0;
    expect(total).toBe(2 * 45_000 + 30_000 + (rows[2]?.costNanoUsd ?? Number.NaN));
    for (const by of ["model", "user", "key", "day", "host", "outcome", "connection"] as const) {
      const summary = await gateway.steps.summarize({ organizationId }, by);
      expect(
        summary.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0),
        by,
      ).toBe(total);
    }
    expect(await gateway.steps.summarize({ organizationId }, [])).toMatchObject([
      { steps: 3, attempts: 4, costNanoUsd: total },
    ]);
  });

  it("name the key by its label, and the day in UTC", async () => {
    const { gateway, organizationId, key, colleague } = await spend();
    const filter: StepFilter = { organizationId, from: "2026-01-02T00:00:00Z" };
    const rows = await gateway.activity.summarize(filter, ["day", "key"]);
    expect(rows.map(({ day, key: id, keyLabel }) => [day, id, keyLabel]).toSorted()).toEqual(
      [
        ["2026-01-02", key.id, "test key"],
        ["2026-01-02", colleague.key.id, "second"],
      ].toSorted(),
    );
  });

  it("select attempts by their own model, gateway and host", async () => {
    const { gateway, organizationId } = await spend();
    const steps = async (filter: Omit<StepFilter, "organizationId">) =>
      (await gateway.steps.summarize({ organizationId, ...filter }, []))[0]?.attempts ?? 0;
    expect(await steps({ model: "*/a/*" })).toBe(2);
    expect(await steps({ model: ["test/a/one", "other/*/*"] })).toBe(3);
    expect(await steps({ gateway: "test" })).toBe(1);
    expect(await steps({ vendor: "b", user: "user-2" })).toBe(1);
    expect(await steps({ host: "spare.test" })).toBe(1);
    expect(await steps({ connection: "customer" })).toBe(0);
    expect(await steps({ outcome: "failed" })).toBe(0);
    expect(await steps({ endpoint: "responses" })).toBe(0);
    expect(await steps({ dataClass: { upTo: "D0_PUBLIC" } })).toBe(0);
  });

  it("keep organizations apart when they are read together", async () => {
    const { gateway, organizationId } = await spend();
    const rows = await gateway.steps.summarize({ organizationId: everyOrganization }, "user");
    expect(rows.map(({ organization, user, steps }) => [organization, user, steps])).toEqual([
      [organizationId, "user-1", 2],
      [organizationId, "user-2", 1],
      ["organization-2", "user-1", 1],
    ]);
  });

  it("refuse unknown dimensions and unknown filters", async () => {
    const { gateway, key } = await createTestGateway({ store: open() });
    const { organizationId } = key;
    const refused = { code: "invalid_argument" };
    const { steps, activity } = gateway;
    // @ts-expect-error an unknown dimension
    await expect(steps.summarize({ organizationId }, "colour")).rejects.toMatchObject(refused);
    // @ts-expect-error a member of every object isn't a dimension either
    await expect(steps.summarize({ organizationId }, ["toString"])).rejects.toMatchObject(refused);
    // @ts-expect-error an unknown member
    await expect(steps.summarize({ organizationId, usr: "a" }, [])).rejects.toMatchObject(refused);
    // @ts-expect-error activity has no outcome
    await expect(activity.summarize({ organizationId }, "outcome")).rejects.toMatchObject({
      code: "invalid_argument",
      param: "by",
    });
    // @ts-expect-error activity has no outcome
    await expect(activity.list({ organizationId, outcome: "failed" })).rejects.toMatchObject(
      refused,
    );
    // @ts-expect-error it must be a string
    await expect(steps.list({ organizationId, user: [7] })).rejects.toMatchObject(refused);
    // @ts-expect-error a dimension is required
    await expect(steps.summarize({ organizationId })).rejects.toMatchObject(refused);
    const [model, aClass, noRange] = [7, "D0_PUBLIC", { to: "D0_PUBLIC" }];
    // @ts-expect-error patterns are strings
    await expect(steps.list({ organizationId, model })).rejects.toMatchObject(refused);
    const { connections, decisions, sessions } = gateway;
    const ofUser = { organizationId, userId: "ada" };
    for (const one of [sessions, connections])
      await expect(one.list(ofUser)).rejects.toMatchObject({ ...refused, param: "userId" });
    for (const dataClass of [aClass, noRange, null]) {
      // @ts-expect-error it must be a range: any other value would select all
      await expect(steps.list({ organizationId, dataClass })).rejects.toMatchObject(refused);
      // @ts-expect-error so must it for decisions
      await expect(decisions.list({ organizationId, dataClass })).rejects.toMatchObject(refused);
    }
    for (const wrong of [{ model: "x" }, { from: "soon" }, { dataClass: { from: "D9" } }])
      await expect(steps.summarize({ organizationId, ...wrong }, [])).rejects.toMatchObject(
        refused,
      );
    expect(await steps.summarize({ organizationId }, [])).toEqual([]);
  });
});
