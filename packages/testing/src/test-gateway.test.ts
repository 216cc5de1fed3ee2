import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { describe, expect, it } from "vitest";
import { countingIds } from "./counting-ids.ts";
import { createTestGateway } from "./test-gateway.ts";

describe("a test gateway", () => {
  it("answers through a scripted provider, signed with the test key", async () => {
    const { gateway, provider, key, chat } = await createTestGateway();
    provider.reply("Hello");
    const answer = await gateway.fetch(chat());
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    });
    expect(provider.calls).toMatchObject([{ gateway: "test", model: "tollgate/scripted" }]);
    const { data } = await gateway.activity.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ keyLabel: "test key", costNanoUsd: 20_000 }]);
  });

  it("answers every gateway the policy names", async () => {
    const policy = definePolicy({
      rules: [
        permit("default", { gateway: "openrouter" }, { fallbacks: ["spare/a/b"] }),
        forbid("no-preview-models", { model: "*/*/*-preview" }),
      ],
    });
    const { gateway, provider, chat } = await createTestGateway({ policy });
    const denied = await gateway.fetch(chat({ model: "openrouter/openai/gpt-6-preview" }));
    expect(denied.status).toBe(403);
    expect(provider.calls).toEqual([]);
    expect((await gateway.fetch(chat({ model: "openrouter/openai/gpt-6" }))).status).toBe(200);
    expect((await gateway.fetch(chat({ model: "spare/a/b" }))).status).toBe(403);
  });

  it("accepts budgets, prices and further gateways", async () => {
    const { gateway, chat } = await createTestGateway({
      gateways: ["other"],
      models: { "a/b": { input: 3, output: 3 } },
      budgets: [{ id: "day", limit: { requests: 1 }, period: "day" }],
    });
    expect((await gateway.fetch(chat({ model: "other/a/b" }))).status).toBe(200);
    expect((await gateway.fetch(chat({ model: "other/a/b" }))).status).toBe(429);
  });

  it("creates further keys", async () => {
    const { gateway, createKey } = await createTestGateway();
    const other = await createKey({ organizationId: "organization-2" });
    expect((await gateway.fetch(other.chat())).status).toBe(200);
    expect((await gateway.activity.list({ organizationId: "organization-2" })).data).toHaveLength(
      1,
    );
  });

  it("gives the same ids in every run", async () => {
    const ids = async () => {
      const { gateway, key, chat } = await createTestGateway();
      return [key.id, key.secret, await (await gateway.fetch(chat())).text()];
    };
    expect(await ids()).toEqual(await ids());
  });
});

describe("counting ids", () => {
  it("are UUIDs, ascending, and different in every series", () => {
    const [a, b] = [countingIds(), countingIds(1)];
    const uuids = [a.uuid(), a.uuid(), b.uuid(), b.uuid()];
    expect([...new Set(uuids)].sort()).toEqual(uuids);
    for (const uuid of uuids) expect(uuid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(a.bytes(33)).toHaveLength(33);
    expect(a.bytes(8)).not.toEqual(b.bytes(8));
  });
});
