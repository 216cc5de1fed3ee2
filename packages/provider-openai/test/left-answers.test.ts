import { channel } from "node:diagnostics_channel";
import { createTestGateway, scriptedUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { openaiCompatible } from "../src/index.ts";
import { chunked, done, finishChunk, streamHead, textChunk, usageChunk } from "./drive.ts";

/** Runs once the HTTP client has read a whole answer, before anything is passed on. */
function onceRead(run: () => void): void {
  const read = channel("undici:request:trailers");
  read.subscribe(run);
  onTestFinished(() => void read.unsubscribe(run));
}

it("counts everything read before its client left, although the client did not get it", async () => {
  const rest = Promise.withResolvers<void>();
  const upstream = await scriptedUpstream(async ({ send }) => {
    await send(streamHead + chunked(textChunk));
    await rest.promise;
    await send(`${chunked(textChunk + finishChunk + usageChunk + done)}0\r\n\r\n`);
  });
  onTestFinished(() => upstream.close());
  const settled = Promise.withResolvers<void>();
  const { gateway, chat, key } = await createTestGateway({
    providers: {
      openai: openaiCompatible({
        baseURL: `${upstream.url}/v1`,
        apiKey: "sk-platform-secret",
        models: { "a/b": { input: "1", output: "2" } },
      }),
    },
    observers: [({ type }) => void (type === "step.settled" && settled.resolve())],
  });
  const client = new AbortController();
  const asked = chat({ model: "openai/a/b", stream: true });
  const answer = await gateway.fetch(new Request(asked, { signal: client.signal }));
  const reader = answer.body?.getReader();
  await reader?.read();
  // It reads on, so nothing waits for it.
  reader?.read().catch(() => {});
  onceRead(() => client.abort());
  rest.resolve();
  await settled.promise;
  expect((await gateway.steps.list({ organizationId: key.organizationId })).data).toMatchObject([
    {
      outcome: "cancelled",
      promptTokens: 1,
      completionTokens: 2,
      usageBasis: "reported",
      costNanoUsd: 5_000,
    },
  ]);
});
