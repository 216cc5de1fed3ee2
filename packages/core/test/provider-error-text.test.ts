import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { openOwnGateways } from "./own-gateways.ts";
import { stores } from "./stores.ts";

const tenant = { organizationId: "organization-1" };
const text = "max_tokens: 9 is above what tulips allow";

function rejected(said: unknown, reason = "status_400") {
  return new ProviderError("The provider answered with status 400.", {
    reason,
    delivery: "answered",
    status: reason === "status_400" ? 400 : 503,
    upstreamError: said,
  });
}

async function stepsOf({ gateway }: Pick<TestGateway, "gateway">) {
  const { data } = await gateway.steps.list(tenant);
  return data.map(({ attempts }) => attempts.map(({ error }) => error?.message ?? null));
}

describe.each(stores)("a provider's error text on %s", (_, open) => {
  const start = async (options: TestGatewayOptions = {}) => {
    const test = await createTestGateway({ store: open(), ...options });
    onTestFinished(() => test.gateway.close());
    return test;
  };

  it("is in the attempt's record and never in the answer", async () => {
    const test = await start();
    for (const stream of [false, true]) {
      test.provider.fail(rejected({ error: { message: text } }));
      const answer = await test.gateway.fetch(test.chat({ stream }));
      const shown = await answer.text();
      expect(shown).toContain("The provider rejected the request.");
      expect(shown).not.toContain("tulips");
    }
    expect(await stepsOf(test)).toEqual([[text], [text]]);
    const [step] = (await test.gateway.steps.list(tenant)).data;
    const found = await test.gateway.steps.get({ ...tenant, id: step?.id ?? "" });
    expect(found.attempts[0]?.error).toEqual({
      message: text,
      commitment: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const file = test.gateway.steps.export(tenant, { format: "jsonl" });
    expect(await new Response(file).text()).toContain(text);
    const table = test.gateway.steps.export(tenant, { format: "csv" });
    expect(await new Response(table).text()).toContain(text);
  });

  it("is recorded on each attempt, and its leaf contains the commitment", async () => {
    const store = open();
    const policy = definePolicy({
      rules: [permit("all", {}, { fallbacks: ["test/tollgate/other"] })],
    });
    const test = await start({ store, policy, retries: { max: 0 } });
    test.provider.fail(rejected("first", "status_503"));
    test.provider.fail(rejected("second", "status_503"));
    await (await test.gateway.fetch(test.chat())).text();
    expect(await stepsOf(test)).toEqual([["first", "second"]]);
    const [step] = (await test.gateway.steps.list(tenant)).data;
    const { data } = await store.evidence.list(tenant, { cursor: null, limit: 100 });
    const errors = data.flatMap(({ meta }) => {
      const { attempt, ended } = JSON.parse(meta);
      return (ended ?? attempt)?.error ?? [];
    });
    expect(errors).toEqual(step?.attempts.map(({ error }) => error?.commitment));
    expect(JSON.stringify(data)).not.toContain("second");
  });

  it("is not kept if the policy keeps only digests", async () => {
    const policy = definePolicy({ rules: [permit("digest", {}, { transcript: "digest" })] });
    const test = await start({ policy });
    test.provider.fail(rejected(text));
    await (await test.gateway.fetch(test.chat())).text();
    const [step] = (await test.gateway.steps.list(tenant)).data;
    expect(step?.attempts[0]?.error).toEqual({ message: null, commitment: expect.any(String) });
  });

  it("is erased with the transcript", async () => {
    const test = await start({ maintenance: false, retention: { transcripts: "1d" } });
    test.provider.fail(rejected(text));
    await (await test.gateway.fetch(test.chat())).text();
    test.clock.setWall(test.clock.now() + 2 * 86_400_000);
    expect(await test.gateway.sweep()).toBe(1);
    expect(await stepsOf(test)).toEqual([[null]]);
  });

  it("is null if the provider gave none or the attempt succeeded", async () => {
    const test = await start({ retries: { max: 0 } });
    test.provider.fail(new ProviderError("Down.", { reason: "down", delivery: "not-sent" }));
    await (await test.gateway.fetch(test.chat())).text();
    expect(await stepsOf(test)).toEqual([[null]]);
  });

  it("contains no part of an organization's own credential", async () => {
    const own = await openOwnGateways({ store: open() });
    const apiKey = "plainword-of-acme-account";
    await own.gateway.connections.set({ organizationId: "organization-1", gateway: "own", apiKey });
    own.upstream.fail(rejected(`account ${apiKey} is closed`));
    await (await own.gateway.fetch(own.chat({ model: "own/a/b" }))).text();
    expect(await stepsOf(own)).toEqual([["account [removed] is closed"]]);
  });
});
