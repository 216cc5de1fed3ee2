import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { ModelOptions } from "@tollgate/core/provider";
import { createTestGateway, scriptedProvider } from "@tollgate/testing";
import { expect, it } from "vitest";

/**
 * The answers of a gateway `gw` that forbids `gw/openai/gpt-5` to each spelling, and the model names it sent upstream.
 */
async function answersOf(models: ModelOptions, spellings: readonly string[]) {
  const upstream = scriptedProvider(models);
  const policy = definePolicy({
    rules: [permit("all"), forbid("no-gpt-5", { model: "gw/openai/gpt-5" })],
  });
  const providers = { gw: upstream.at("gw") };
  const { gateway, chat } = await createTestGateway({ policy, providers });
  const statuses: number[] = [];
  for (const model of spellings) statuses.push((await gateway.fetch(chat({ model }))).status);
  return { statuses, sent: upstream.calls.map(({ upstreamName }) => upstreamName) };
}

it("F63 an invented vendor name reaches no forbidden model (H2)", async () => {
  const spellings = ["gw/openai/gpt-5", "gw/abcdef/gpt-5", "gw/OpenAI/gpt-5", "gw/openai/GPT-5"];
  expect(await answersOf({ vendor: "openai" }, spellings)).toEqual({
    statuses: [403, 200, 403, 403],
    sent: ["abcdef/gpt-5"],
  });
});

it("F63 a listed model is reached only by its own id (H2)", async () => {
  const models = { "openai/gpt-5": { upstreamName: "deployment" } };
  const spellings = ["gw/openai/gpt-5", "gw/openai/deployment", "gw/openai/Deployment"];
  const open = { models, open: true, vendor: "openai" };
  expect(await answersOf(open, spellings)).toEqual({ statuses: [403, 404, 404], sent: [] });
});
