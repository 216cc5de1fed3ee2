import { ContextOverflowError } from "@langchain/core/errors";
import { ChatOpenAI } from "@langchain/openai";
import { createGateway } from "@tollgate/core";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Refused, serveUpstream } from "./upstreams/upstream-server.ts";

const model = "mock/openai/mini";

/** How upstreams report that a conversation is too long. Agents read this error and shorten their history. */
const refusals = [
  { error: { message: "Too many tokens.", code: "context_length_exceeded" } },
  { error: { message: "This model's maximum context length is 8192 tokens.", code: null } },
];

describe.each(refusals)("an upstream that rejects a long conversation: $error.message", (body) => {
  let upstream: Awaited<ReturnType<typeof serveUpstream>> | undefined;
  let gateway: ReturnType<typeof createGateway> | undefined;

  beforeAll(async () => {
    upstream = await serveUpstream("/v1/chat/completions", () => {
      throw new Refused("too long", body);
    });
    const mock = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: null });
    gateway = createGateway({ store: memoryStore(), providers: { mock } });
  });
  afterAll(async () => {
    await gateway?.close();
    await upstream?.stop();
  });

  async function target() {
    if (gateway === undefined) return expect.unreachable("the gateway did not start");
    const who = { organizationId: "acme", userId: "ada", label: "laptop" };
    const { secret: apiKey } = await gateway.keys.create(who);
    return { baseURL: "http://in-process/v1", apiKey, fetch: gateway.fetch, maxRetries: 0 };
  }

  it.each(["chat", "responses"] as const)("makes OpenAI's SDK throw its code: %s", async (api) => {
    const openai = new OpenAI(await target());
    const asked =
      api === "chat"
        ? openai.chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] })
        : openai.responses.create({ model, input: "Hi" });
    await expect(asked).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      message: expect.stringContaining("maximum context length"),
    });
  });

  it.each([false, true])(
    "makes LangChain throw its own error, over Responses: %s",
    async (over) => {
      const { apiKey, ...configuration } = await target();
      const options = { model, apiKey, maxRetries: 0, useResponsesApi: over, configuration };
      const error: unknown = await new ChatOpenAI(options).invoke("Hi").catch((thrown) => thrown);
      expect(ContextOverflowError.isInstance(error), String(error)).toBe(true);
    },
  );
});
