import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

describe.each(stores)("activity on %s (section 1)", (_, open) => {
  it("shows model, provider, tokens, cost, duration, tool calls and the key's label", async () => {
    const { gateway, provider, clock, key, chat } = await createTestGateway({ store: open() });
    const usage = { promptTokens: 9, completionTokens: 4, cachedTokens: 0, reasoningTokens: 2 };
    const toolCalls = [
      { name: "f", arguments: "{}" },
      { name: "g", arguments: "{}" },
    ];
    provider.reply({ toolCalls, usage, delay: "2s", pace: "1s" });
    const answer = await clock.until(completionOf(gateway.fetch(chat())));
    const { data } = await gateway.activity.list({ organizationId: key.organizationId });
    expect(data).toEqual([
      {
        id: answer.id.replace("chatcmpl-", ""),
        organizationId: "organization-1",
        userId: "user-1",
        keyId: key.id,
        keyLabel: "test key",
        source: "api",
        endpoint: "chat_completions",
        stream: false,
        sessionId: answer.session_id,
        turnId: answer.turn_id,
        stepNumber: 0,
        droppedFields: {},
        metadata: {},
        idempotencyKeySha256: null,
        retryOf: null,
        dataClass: "D1_INTERNAL",
        decisionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        requestedModel: "test/tollgate/scripted",
        model: "test/tollgate/scripted",
        gateway: "test",
        provider: "tollgate",
        host: "test.test",
        connection: "platform",
        billedTo: "platform",
        finishReason: "tool_calls",
        promptTokens: 9,
        completionTokens: 4,
        totalTokens: 13,
        cachedTokens: 0,
        reasoningTokens: 2,
        usageBasis: "reported",
        costNanoUsd: 9 * 1_000 + 4 * 2_000,
        costBasis: "reported",
        serviceTier: null,
        priceSource: "custom",
        openedAt: "2026-01-01T00:00:00.000Z",
        settledAt: "2026-01-01T00:00:09.000Z",
        durationMs: 9_000,
        timeToFirstTokenMs: 9_000,
        toolCalls: 2,
      },
    ]);
  });

  it("uses a trusted provider's reported cost if no price is known, even 0", async () => {
    const { gateway, provider, key, chat } = await createTestGateway({
      store: open(),
      models: {},
      billing: { reportedCost: "trust" },
    });
    provider.reply({
      text: "a",
      usage: { promptTokens: 1, completionTokens: 1, costNanoUsd: 777 },
    });
    provider.reply({ text: "a", usage: { promptTokens: 1, completionTokens: 1, costNanoUsd: 0 } });
    for (let call = 0; call < 3; call++) await gateway.fetch(chat());
    const { data } = await gateway.activity.list({ organizationId: key.organizationId });
    expect(data.map(({ costNanoUsd, priceSource }) => [costNanoUsd, priceSource])).toEqual([
      [null, "unknown"],
      [0, "provider"],
      [777, "provider"],
    ]);
  });

  it("lists completed Steps only", async () => {
    const { gateway, provider, key, chat } = await createTestGateway({ store: open() });
    await gateway.fetch(chat());
    provider.fail(new ProviderError("Down.", { reason: "down", delivery: "unknown" }));
    await gateway.fetch(chat({ max_tokens: 10 }));
    const { organizationId } = key;
    expect((await gateway.activity.list({ organizationId })).data).toHaveLength(1);
    const { data } = await gateway.steps.list({ organizationId });
    expect(data.map(({ outcome, costNanoUsd }) => [outcome, costNanoUsd])).toEqual([
      ["failed", 30_000],
      ["completed", 20_000],
    ]);
  });

  it("shows one organization, with filters and pages", async () => {
    const { gateway, clock, key, chat, createKey } = await createTestGateway({
      store: open(),
      gateways: ["other"],
    });
    const colleague = await createKey({ userId: "user-2", label: "second" });
    const stranger = await createKey({ organizationId: "organization-2" });
    await gateway.fetch(chat());
    await gateway.fetch(
      chat({ model: "other/a/b" }, { "x-service-data-sensitivity": "D3_RESTRICTED" }),
    );
    await clock.advance("1h");
    await gateway.fetch(colleague.chat());
    await gateway.fetch(stranger.chat());
    const { organizationId } = key;
    const count = async (
      filter: Omit<Parameters<typeof gateway.activity.list>[0], "organizationId">,
    ) => (await gateway.activity.list({ organizationId, ...filter })).data.length;
    expect(await count({})).toBe(3);
    expect(await count({ source: "api" })).toBe(3);
    expect(await count({ source: "app" })).toBe(0);
    expect(await count({ user: "user-2" })).toBe(1);
    expect(await count({ key: [key.id, colleague.key.id] })).toBe(3);
    expect(await count({ gateway: "other" })).toBe(1);
    expect(await count({ model: "*/tollgate/*" })).toBe(2);
    expect(await count({ dataClass: { from: "D2_CONFIDENTIAL" } })).toBe(1);
    expect(await count({ from: "2026-01-01T01:00:00Z" })).toBe(1);
    expect(await count({ to: "2026-01-01T01:00:00Z" })).toBe(2);

    const page = await gateway.activity.list({ organizationId }, { limit: 2 });
    const rest = await gateway.activity.list({ organizationId }, { cursor: page.nextCursor });
    const rows = [];
    for await (const row of gateway.activity.list({ organizationId }, { limit: 1 })) rows.push(row);
    expect([...page.data, ...rest.data]).toEqual(rows);
    expect(rest.nextCursor).toBeNull();
  });
});
