import { definePolicy, permit } from "@tollgate/core/policy";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { stores } from "./stores.ts";

const tenant = { organizationId: "organization-1" };

describe.each(stores)("the metadata of a request on %s", (_, open) => {
  it("is on the Step's record and selects Steps, activity, summaries and exports", async () => {
    const { gateway, chat, key } = await createTestGateway({ store: open() });
    onTestFinished(() => gateway.close());
    const metadata = { ticket: "T-17", "a=b": "" };
    await gateway.fetch(chat({ metadata }));
    const body = JSON.stringify({ model: "test/tollgate/scripted", input: "Hi", metadata });
    const { headers } = chat();
    await gateway.fetch(new Request("http://test/v1/responses", { method: "POST", headers, body }));
    await gateway.fetch(chat({ metadata: { ticket: "T-1" } }));
    await gateway.fetch(chat());
    const { data } = await gateway.steps.list({ ...tenant, metadata: { ticket: "T-17" } });
    expect(data.map((step) => [step.endpoint, step.metadata])).toEqual([
      ["responses", metadata],
      ["chat_completions", metadata],
    ]);
    const both = { ...tenant, metadata };
    expect((await gateway.activity.list(both)).data).toHaveLength(2);
    expect(await gateway.steps.summarize(both, [])).toMatchObject([{ steps: 2 }]);
    const file = await new Response(gateway.steps.export(both, { format: "csv" })).text();
    expect(file).toContain('"{""ticket"":""T-17"",""a=b"":""""}"');
    expect((await gateway.steps.list({ ...tenant, key: key.id })).data[0]?.metadata).toEqual({});
  });
});

it("counts a character outside the basic plane once, in requests and in filters", async () => {
  const { gateway, chat } = await createTestGateway();
  const metadata = { ["\u{1f600}".repeat(64)]: "\u{1f600}".repeat(512) };
  expect((await gateway.fetch(chat({ metadata }))).status).toBe(200);
  expect((await gateway.steps.list({ ...tenant, metadata })).data).toMatchObject([{ metadata }]);
  for (const tooLong of [{ a: "\u{1f600}".repeat(513) }, { ["\u{1f600}".repeat(65)]: "" }])
    expect((await gateway.fetch(chat({ metadata: tooLong }))).status).toBe(400);
});

it("isn't kept if the policy keeps only digests", async () => {
  const policy = definePolicy({ rules: [permit("digest", {}, { transcript: "digest" })] });
  const { gateway, chat } = await createTestGateway({ policy });
  await gateway.fetch(chat({ metadata: { ticket: "T-17" } }));
  expect((await gateway.steps.list(tenant)).data[0]?.metadata).toEqual({});
});

it.each([
  [{}, /`metadata` must have 1 to 16 pairs/],
  [{ a: 1 }, /metadata\.a/],
  [{ a: "x".repeat(513) }, /`metadata\.a` must be at most 512 characters/],
  [{ ["n".repeat(65)]: "" }, /metadata/],
  [Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`${at}`, ""])), /1 to 16 pairs/],
  ["a=b", /metadata/],
  [null, /metadata/],
])("a filter refuses impossible metadata: %j", async (metadata, message) => {
  const { gateway } = await createTestGateway();
  const list = () => Reflect.apply(gateway.steps.list, gateway.steps, [{ ...tenant, metadata }]);
  await expect(async () => await list()).rejects.toThrow(message);
});
