import { type ExportOptions, everyOrganization } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";

const policy = definePolicy({
  rules: [permit("all"), forbid("no-previews", { model: "*/*/preview" }, { reason: "=not yet" })],
});

/** The whole file, and the number of pieces it arrived in. */
async function fileOf(
  stream: ReadableStream<Uint8Array>,
): Promise<{ readonly text: string; readonly pieces: number }> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, pieces] = ["", 0];
  for await (const piece of stream) {
    text += decoder.decode(piece, { stream: true });
    pieces++;
  }
  return { text: text + decoder.decode(), pieces };
}

const linesOf = (text: string): readonly string[] => text.split("\r\n").slice(0, -1);

describe.each(stores)("exports on %s", (_, open) => {
  async function calls(count: number, label = '=HYPERLINK("x","y")') {
    const test = await createTestGateway({ store: open(), policy, key: { label } });
    for (let call = 0; call < count; call++) await (await test.gateway.fetch(test.chat())).text();
    await test.gateway.fetch(test.chat({ model: "test/a/preview" }));
    return { ...test, organizationId: test.key.organizationId };
  }

  it("write the whole records of a list as JSON Lines, or an empty file", async () => {
    const { gateway, organizationId } = await calls(3);
    for (const noun of [gateway.steps, gateway.activity, gateway.decisions]) {
      const { text } = await fileOf(noun.export({ organizationId }, { format: "jsonl" }));
      const { data } = await noun.list({ organizationId });
      expect(
        text
          .trimEnd()
          .split("\n")
          .map((line): unknown => JSON.parse(line)),
      ).toEqual(data);
      const none = noun.export({ organizationId: "nobody" }, { format: "jsonl" });
      expect((await fileOf(none)).text).toBe("");
    }
  });

  it("write CSV with a header, one record per line, and no formula that a spreadsheet would run", async () => {
    const { gateway, organizationId, key } = await calls(2);
    const { text } = await fileOf(gateway.steps.export({ organizationId }, { format: "csv" }));
    const [head, ...rows] = linesOf(text);
    expect(head).toBe(
      "id,openedAt,settledAt,organizationId,userId,keyId,keyLabel,source,endpoint,stream," +
        "sessionId,turnId,stepNumber,dataClass,decisionId,requestedModel,model,outcome,reason," +
        "finishReason,promptTokens,completionTokens,totalTokens,cachedTokens,reasoningTokens," +
        "usageBasis,costNanoUsd,billedTo,head,replyHead,attempts,cacheWriteTokens," +
        "cacheWrite1hTokens,audioInputTokens,audioOutputTokens,imageInputTokens," +
        "imageOutputTokens,costBasis,serviceTier,metadata,error,idempotencyKeySha256,retryOf",
    );
    const [newest] = (await gateway.steps.list({ organizationId })).data;
    expect(rows).toHaveLength(2);
    expect(rows[0]).toBe(
      [
        newest?.id,
        `2026-01-01T00:00:00.000Z,2026-01-01T00:00:00.000Z,${organizationId},user-1,${key.id}`,
        '"\'=HYPERLINK(""x"",""y"")",api,chat_completions,false',
        `${newest?.sessionId},${newest?.turnId},0,D1_INTERNAL,${newest?.decisionId}`,
        "test/tollgate/scripted,test/tollgate/scripted,completed,,stop,10,5,15,,,reported,20000",
        `platform,${newest?.head},${newest?.replyHead},1,,,,,,,reported,,,,,`,
      ].join(","),
    );
    const denied = gateway.decisions.export({ organizationId, effect: "deny" }, { format: "csv" });
    const [, denial] = linesOf((await fileOf(denied)).text);
    expect(denial).toMatch(/,test\/a\/preview,platform,deny,no-previews,'=not yet,/);
    const none = gateway.activity.export({ organizationId: "nobody" }, { format: "csv" });
    expect(linesOf((await fileOf(none)).text)).toHaveLength(1);
  });

  it("apply a filter, and write one organization after the other", async () => {
    const { gateway, createKey } = await calls(2);
    const other = await createKey({ organizationId: "organization-0", label: "other" });
    await (await gateway.fetch(other.chat())).text();
    const owners = async (filter: Parameters<typeof gateway.activity.export>[0]) => {
      const { text } = await fileOf(gateway.activity.export(filter, { format: "csv" }));
      return linesOf(text)
        .slice(1)
        .map((line) => line.split(",")[3]);
    };
    expect(await owners({ organizationId: everyOrganization })).toEqual([
      "organization-0",
      "organization-1",
      "organization-1",
    ]);
    expect(await owners({ organizationId: everyOrganization, key: other.key.id })).toEqual([
      "organization-0",
    ]);
  });

  it("read only as much as the consumer takes", async () => {
    const { gateway, organizationId } = await calls(2);
    const stream = gateway.steps.export({ organizationId }, { format: "csv" });
    const reader = stream.getReader();
    expect((await reader.read()).done).toBe(false);
    await reader.cancel();
    expect((await reader.read()).done).toBe(true);
  });

  it("are refused at once for an unknown format or filter", async () => {
    const { gateway, key } = await createTestGateway({ store: open() });
    const { organizationId } = key;
    const refused = expect.objectContaining({ code: "invalid_argument" });
    // @ts-expect-error an unknown format
    const format: ExportOptions["format"] = "xlsx";
    for (const noun of [gateway.steps, gateway.activity, gateway.decisions]) {
      expect(() => noun.export({ organizationId }, { format })).toThrow(refused);
      expect(() => noun.export({ organizationId, from: "x" }, { format: "csv" })).toThrow(refused);
      expect(() => noun.export({ organizationId: "" }, { format: "csv" })).toThrow(refused);
    }
  });
});

it("filters decisions by their facts", async () => {
  const { gateway, chat, key } = await createTestGateway({ policy });
  await gateway.fetch(chat());
  await gateway.fetch(chat({ model: "test/a/preview" }));
  const { organizationId } = key;
  const count = async (
    filter: Omit<Parameters<typeof gateway.decisions.list>[0], "organizationId">,
  ) => (await gateway.decisions.list({ organizationId, ...filter })).data.length;
  expect(await count({ rule: ["no-previews", "x"] })).toBe(1);
  expect(await count({ model: "*/tollgate/*" })).toBe(1);
  expect(await count({ gateway: "other" })).toBe(0);
  expect(
    await count({ source: "api", connection: "platform", dataClass: { upTo: "D1_INTERNAL" } }),
  ).toBe(2);
  // @ts-expect-error an unknown member
  await expect(count({ colour: "red" })).rejects.toMatchObject({ code: "invalid_argument" });
});
