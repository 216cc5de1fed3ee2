import { readFileSync } from "node:fs";
import { createGateway } from "@tollgate/core";
import { anthropic } from "@tollgate/provider-anthropic";
import { memoryStore } from "@tollgate/store-memory";
import { messagesUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";

const members = z.record(z.string(), z.unknown());

/** Requests that Claude Code sent, shortened. `SEALED` is the signature that it got. */
const recorded = z
  .strictObject({
    client: z.string(),
    beta: z.string(),
    exchanges: z.array(
      z.strictObject({
        request: members,
        answer: z.array(z.looseObject({ type: z.string() })),
      }),
    ),
  })
  .parse(JSON.parse(readFileSync(new URL("claude-code/recorded.json", import.meta.url), "utf8")));

const organizationId = "acme";

/**
 * The usage of each answer, and its invoice in nano-USD, worked out by hand. A token of input is 3,000, one read from the
 * cache 300, one written to it for 5 minutes 3,750 or for an hour 6,000, and one of output 15,000.
 */
const invoices = [
  {
    usage: used(3, { read: 0, minutes: 4_000, hour: 8_000 }, 120),
    // 3 x 3,000 + 4,000 x 3,750 + 8,000 x 6,000 + 120 x 15,000
    cost: 64_809_000,
  },
  {
    usage: used(5, { read: 12_000, minutes: 250, hour: 0 }, 40),
    // 5 x 3,000 + 12,000 x 300 + 250 x 3,750 + 40 x 15,000
    cost: 5_152_500,
  },
  {
    usage: used(4, { read: 12_250, minutes: 310, hour: 0 }, 95),
    // 4 x 3,000 + 12,250 x 300 + 310 x 3,750 + 95 x 15,000
    cost: 6_274_500,
  },
  {
    usage: used(900, { read: 8_000, minutes: 0, hour: 2_000 }, 7),
    // 900 x 3,000 + 8,000 x 300 + 2,000 x 6,000 + 7 x 15,000
    cost: 17_205_000,
  },
  {
    usage: used(6, { read: 12_560, minutes: 0, hour: 0 }, 12),
    // 6 x 3,000 + 12,560 x 300 + 12 x 15,000
    cost: 3_966_000,
  },
] as const;
/** The sum of the five: 0.097407 dollars. */
const wholeInvoice = 97_407_000;

function used(
  input_tokens: number,
  cache: { readonly read: number; readonly minutes: number; readonly hour: number },
  output_tokens: number,
) {
  return {
    input_tokens,
    cache_read_input_tokens: cache.read,
    cache_creation_input_tokens: cache.minutes + cache.hour,
    cache_creation: {
      ephemeral_5m_input_tokens: cache.minutes,
      ephemeral_1h_input_tokens: cache.hour,
    },
    output_tokens,
  };
}

async function start() {
  const upstream = await messagesUpstream((_, number) => ({
    content: recorded.exchanges[number - 1]?.answer ?? [],
    usage: invoices[number - 1]?.usage ?? {},
  }));
  onTestFinished(() => upstream.close());
  const model = {
    input: 3,
    cachedInput: "0.30",
    cacheWrite: { "5m": "3.75", "1h": 6 },
    output: 15,
    maxOutputTokens: 64_000,
  };
  const gateway = createGateway({
    store: memoryStore(),
    providers: {
      claude: anthropic({
        baseURL: upstream.url,
        apiKey: "sk-upstream",
        models: { "anthropic/claude-sonnet-5": model },
      }),
    },
    budgets: [{ id: "team", limit: { usd: 10 }, period: "total" }],
    aliases: { "claude-sonnet-5": "claude/anthropic/claude-sonnet-5" },
  });
  onTestFinished(() => gateway.close());
  const { secret } = await gateway.keys.create({ organizationId, userId: "ada", label: "agent" });
  const headers = {
    authorization: `Bearer ${secret}`,
    "content-type": "application/json",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": recorded.beta,
  };
  const post = async (body: string) => {
    const url = "http://gateway/v1/messages?beta=true";
    const answer = await gateway.fetch(url, { method: "POST", headers, body });
    return { status: answer.status, stream: await answer.text() };
  };
  return { upstream, gateway, post };
}

const onlyText = /\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]/g;

/** The request as the upstream gets it: with its own signature, one text as plain text, and no `citations`. */
function expected(request: object): unknown {
  const text = JSON.stringify(request).replaceAll(',"citations":null', "");
  return JSON.parse(text.replaceAll("SEALED", "c2lnbmVk").replaceAll(onlyText, "$1"));
}

it(`records ${recorded.client}, and sends Anthropic what it sent`, async () => {
  const { upstream, gateway, post } = await start();
  let sealed = "";
  for (const { request } of recorded.exchanges) {
    const { status, stream } = await post(JSON.stringify(request).replaceAll("SEALED", sealed));
    expect([status, stream.includes("message_stop")]).toEqual([200, true]);
    sealed = /"signature":"([^"]+)"/.exec(stream)?.[1] ?? sealed;
  }
  expect(sealed).not.toBe("c2lnbmVk");
  expect(upstream.requests.map(({ body }) => body)).toEqual(
    recorded.exchanges.map(({ request }) => expected(request)),
  );
  const [betas = ""] = /anthropic-beta: .*/.exec(upstream.requests[0]?.head ?? "") ?? [];
  expect(betas.replace("anthropic-beta: ", "").split(",").sort()).toEqual(
    recorded.beta.split(",").sort(),
  );

  const { data } = await gateway.steps.list({ organizationId });
  // Its metadata names the run, so the Sessions of its sub-agents are found with its own.
  const metadata = data[0]?.metadata ?? {};
  expect(JSON.parse(metadata["user_id"] ?? "{}")).toMatchObject({ session_id: "a-session" });
  expect((await gateway.steps.list({ organizationId, metadata })).data).toEqual(data);
  const steps = data.toReversed();
  const sessions = [...new Set(steps.map(({ sessionId }) => sessionId))];
  const turns = [...new Set(steps.map(({ turnId }) => turnId))];
  expect(
    steps.map(({ sessionId, turnId, stepNumber }) => [
      sessions.indexOf(sessionId),
      turns.indexOf(turnId),
      stepNumber,
    ]),
  ).toEqual([
    [0, 0, 0],
    [0, 0, 1],
    [0, 1, 0],
    // The sub-agent
    [1, 2, 0],
    [0, 1, 1],
  ]);
});

it("costs what the invoice says, its cached tokens included", async () => {
  const { gateway, post } = await start();
  let sealed = "";
  for (const { request } of recorded.exchanges) {
    const { stream } = await post(JSON.stringify(request).replaceAll("SEALED", sealed));
    sealed = /"signature":"([^"]+)"/.exec(stream)?.[1] ?? sealed;
  }
  const { data } = await gateway.steps.list({ organizationId });
  expect(data.toReversed().map(({ costNanoUsd }) => costNanoUsd)).toEqual(
    invoices.map(({ cost }) => cost),
  );
  const sums = await gateway.steps.summarize({ organizationId }, ["key"]);
  expect(sums).toMatchObject([{ steps: 5, costNanoUsd: wholeInvoice }]);
  expect((await gateway.budgets.status({ id: "team" })).data).toMatchObject([
    { settled: wholeInvoice, held: 0 },
  ]);
});
