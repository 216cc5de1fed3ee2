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

async function start() {
  const upstream = await messagesUpstream((_, number) => ({
    content: recorded.exchanges[number - 1]?.answer ?? [],
  }));
  onTestFinished(() => upstream.close());
  const model = { input: 3, output: 15, maxOutputTokens: 64_000 };
  const gateway = createGateway({
    store: memoryStore(),
    providers: {
      claude: anthropic({
        baseURL: upstream.url,
        apiKey: "sk-upstream",
        models: { "anthropic/claude-sonnet-5": model },
      }),
    },
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
