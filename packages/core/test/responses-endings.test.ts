import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eventLog } from "./event-log.ts";
import { eventsOf, lastResponse, responseOf, responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";
import { heldOn, written } from "./written.ts";

async function start(options: TestGatewayOptions = {}) {
  const log = eventLog();
  const test = await createTestGateway({ observers: log.observers, ...options });
  const { gateway, key } = test;
  const { organizationId } = key;
  return {
    ...test,
    log,
    responses: responsesOf(gateway, key.secret),
    steps: async () => (await gateway.steps.list({ organizationId })).data,
    activity: async () => (await gateway.activity.list({ organizationId })).data,
  };
}

const refused = new ProviderError("The provider refused.", {
  reason: "status_500",
  delivery: "answered",
  status: 500,
});
const cut = new ProviderError("The provider broke off.", {
  reason: "connection_reset",
  delivery: "unknown",
});
const decisionHeader = "x-service-policy-decision-id";

/** The types of a stream's events, without their common prefix. */
const typesOf = (events: Awaited<ReturnType<typeof eventsOf>>) =>
  events.map(({ type }) => type.replace("response.", ""));

describe.each(stores)("a provider that fails, on %s", (_, open) => {
  it("before the first byte causes a plain error, streamed or not, and nothing is stored", async () => {
    const { provider, responses, steps, activity, clock } = await start({ store: open() });
    for (const stream of [true, false]) {
      provider.fail(refused, { times: 3 });
      const answer = await clock.until(responses.post({ stream }));
      expect([answer.status, answer.headers.get("content-type")]).toEqual([
        502,
        "application/json",
      ]);
      expect(answer.headers.get(decisionHeader)).toBeTruthy();
      expect(await failureOf(answer)).toMatchObject({ code: "upstream_error", param: null });
    }
    const ended = await steps();
    expect(ended.map(({ outcome, endpoint }) => [outcome, endpoint])).toEqual([
      ["failed", "responses"],
      ["failed", "responses"],
    ]);
    for (const { id } of ended)
      expect((await responses.get(`resp_${id.replaceAll("-", "")}`)).status).toBe(404);
    expect(await activity()).toEqual([]);
  });

  it("after the first byte ends the stream with error and response.failed, and nothing is stored", async () => {
    const { provider, responses, steps } = await start({ store: open() });
    provider.fail(cut, { afterEvents: 2, answer: { text: ["Hel", "lo"] } });
    const answer = await responses.post({ stream: true });
    expect(answer.status).toBe(200);
    const events = await eventsOf(answer);
    expect(typesOf(events)).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "error",
      "failed",
    ]);
    expect(events.at(-2)).toMatchObject({ code: "server_error", error: { code: "server_error" } });
    const failed = events.at(-1)?.["response"];
    expect(failed).toMatchObject({
      status: "failed",
      error: { code: "server_error" },
      usage: null,
      output: [{ status: "incomplete", content: [{ text: "Hel" }] }],
    });
    const { id } = z.looseObject({ id: z.string() }).parse(failed);
    expect((await responses.get(id)).status).toBe(404);
    expect((await responses.post({ previous_response_id: id })).status).toBe(400);
    expect(await steps()).toMatchObject([{ outcome: "failed", usageBasis: "estimated" }]);
  });

  it("after the headers were sent causes an error in the stream, after comments", async () => {
    const { provider, responses, clock } = await start({ store: open() });
    provider.reply({ delay: "40s", failure: { error: cut } });
    const answer = await clock.until(responses.post({ stream: true }));
    expect(answer.status).toBe(200);
    const text = await clock.until(answer.text());
    expect(text).toMatch(/^(: ping\n\n)+event: response\.created\n/);
    const types = typesOf(await eventsOf(new Response(text)));
    expect(types).toEqual(["created", "in_progress", "error", "failed"]);
  });

  it("before the end of its answer never produces a complete one", async () => {
    const { provider, responses } = await start({ store: open() });
    provider.reply({ text: "Hel", finishReason: null });
    const types = typesOf(await eventsOf(responses.post({ stream: true })));
    expect(types.slice(-2)).toEqual(["error", "failed"]);
    provider.reply({ text: "Hel", finishReason: null });
    expect((await responses.post()).status).toBe(502);
  });
});

describe.each(stores)("an answer that was stopped early, on %s", (_, open) => {
  it.each([
    ["length", "max_output_tokens"],
    ["content_filter", "content_filter"],
  ] as const)("by %s is incomplete, stored, and can be continued", async (finishReason, reason) => {
    const { provider, responses, activity } = await start({ store: open() });
    for (const stream of [false, true]) {
      provider.reply({ text: "Once upon", finishReason });
      const answer = await responses.post({ stream });
      const created = stream ? lastResponse(await eventsOf(answer)) : await responseOf(answer);
      expect(created).toMatchObject({
        status: "incomplete",
        incomplete_details: { reason },
        completed_at: null,
        output: [{ status: "incomplete" }],
        usage: { total_tokens: 15 },
      });
      expect(await (await responses.get(created.id)).json()).toEqual(created);
      await responses.create({ previous_response_id: created.id, input: "Go on" });
      expect(provider.calls.at(-1)?.request.messages).toMatchObject([
        { content: "Hello" },
        { content: "Once upon" },
        { content: "Go on" },
      ]);
    }
    expect(await activity()).toHaveLength(4);
  });

  it("without any text is complete and empty", async () => {
    const { provider, responses } = await start({ store: open() });
    provider.reply({ text: [] });
    const created = await responses.create();
    expect([created.status, created.output]).toEqual(["completed", []]);
    expect((await responses.post({ previous_response_id: created.id })).status).toBe(200);
  });
});

describe("a client that leaves", () => {
  it("ends the provider's call; nothing is stored, and the usage is estimated", async () => {
    const { provider, gateway, key, log, responses, steps } = await start();
    provider.reply({ text: ["123456", "789"] });
    provider.hold({ afterEvents: 2 });
    const stream = await responses.post({ stream: true });
    const reader = stream.body?.getReader();
    const first = new TextDecoder().decode((await reader?.read())?.value);
    await reader?.cancel();
    await log.seeing("step.settled");
    expect(provider.calls[0]?.signal.aborted).toBe(true);
    expect(await steps()).toMatchObject([
      { outcome: "cancelled", reason: "client_closed", usageBasis: "estimated" },
    ]);
    const id = /"id":"(resp_[0-9a-f]+)"/.exec(first)?.[1] ?? "";
    expect(id).not.toBe("");
    expect((await responsesOf(gateway, key.secret).get(id)).status).toBe(404);
  });

  it("gets no stored response, even if the answer is read to its end", async () => {
    const { provider, log, responses, steps } = await start({ onDisconnect: "drain" });
    const hold = provider.hold({ afterEvents: 2 });
    provider.reply({ text: ["Hel", "lo"] });
    const stream = await responses.post({ stream: true });
    await stream.body?.cancel();
    hold.release();
    await log.seeing("step.settled");
    const [step] = await steps();
    expect(step).toMatchObject({ outcome: "cancelled", usageBasis: "reported" });
    const stored = await responses.get(`resp_${step?.id.replaceAll("-", "")}`);
    expect(stored.status).toBe(404);
  });
});

describe.each(stores)("governance of Responses, on %s", (_, open) => {
  it("a denied request gives 403 with its decision, and leaves nothing else", async () => {
    const policy = definePolicy({
      rules: [permit("all", {}), forbid("no-tools", { tools: true }, { reason: "no tools here" })],
    });
    const { gateway, provider, responses } = await start({ store: open(), policy });
    const tools = [{ type: "function", name: "look" }];
    for (const stream of [false, true]) {
      const answer = await responses.post({ tools, stream });
      expect([answer.status, answer.headers.get("content-type")]).toEqual([
        403,
        "application/json",
      ]);
      expect(answer.headers.get(decisionHeader)).toBeTruthy();
      expect(await failureOf(answer)).toMatchObject({ code: "policy_denied" });
    }
    expect(provider.calls).toEqual([]);
    expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 2 });
    expect((await responses.post()).status).toBe(200);
  });

  it("a hard Budget counts Responses and Chat together, and holds return to zero", async () => {
    const budget = { id: "few", limit: { requests: 2 }, period: "day", mode: "hard" } as const;
    const { gateway, provider, chat, responses } = await start({
      store: open(),
      budgets: [{ ...budget, scope: {} }],
    });
    await responses.create();
    expect((await gateway.fetch(chat())).status).toBe(200);
    const answer = await responses.post({ stream: true });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([429, "false"]);
    expect(await failureOf(answer)).toMatchObject({
      type: "insufficient_quota",
      code: "budget_exceeded",
    });
    expect(provider.calls).toHaveLength(2);
    expect(await heldOn(gateway, "few")).toBe(0);
  });

  it("a policy's obligations apply: its output cap is sent upstream", async () => {
    const policy = definePolicy({ rules: [permit("short", {}, { maxOutputTokens: 7 })] });
    const { provider, responses } = await start({ store: open(), policy });
    const created = await responses.create({ max_output_tokens: 100 });
    expect(provider.calls[0]?.request.maxOutputTokens).toBe(7);
    expect(created["max_output_tokens"]).toBe(100);
  });
});
