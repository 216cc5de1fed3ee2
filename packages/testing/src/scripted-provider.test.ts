import { type CompletionEvent, ProviderError } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { manualClock } from "./manual-clock.ts";
import { type ScriptedProvider, scriptedProvider } from "./scripted-provider.ts";

const limits = { eventBytes: 1_000, totalBytes: 1_000, bodyBytes: 4_194_304 };

async function ask(provider: ScriptedProvider, options: { stream?: boolean; model?: string } = {}) {
  const { stream = true, model = "a/b" } = options;
  const controller = new AbortController();
  const request = { messages: [{ role: "user" as const, content: "Hi" }] };
  const { signal } = controller;
  const call = {
    model,
    upstreamName: model,
    request,
    stream,
    credential: null,
    signal,
    limits,
    outputCap: 4_096,
    traceparent: null,
    connectWithin: 10_000,
  };
  const batches: (readonly CompletionEvent[])[] = [];
  const ended = (async () => {
    for await (const batch of provider.complete(call)) batches.push(batch);
  })();
  return { batches, ended, controller };
}

async function text(provider: ScriptedProvider, options?: { stream?: boolean; model?: string }) {
  const { batches, ended } = await ask(provider, options);
  await ended;
  return batches.flat().flatMap((event) => (event.type === "text-delta" ? event.text : []));
}

describe("a scripted provider", () => {
  it("answers in the scripted order, and OK without a script", async () => {
    const provider = scriptedProvider();
    provider.reply("one");
    provider.reply({ text: ["tw", "o"] });
    expect(await text(provider)).toEqual(["one"]);
    expect(await text(provider)).toEqual(["tw", "o"]);
    expect(await text(provider)).toEqual(["OK"]);
  });

  it("uses a reply only for the calls it matches", async () => {
    const provider = scriptedProvider();
    provider.reply((call) => `for ${call.model}`, {
      when: (call) => call.model === "a/c",
      times: Number.POSITIVE_INFINITY,
    });
    expect(await text(provider)).toEqual(["OK"]);
    expect(await text(provider, { model: "a/c" })).toEqual(["for a/c"]);
    expect(await text(provider, { model: "a/c" })).toEqual(["for a/c"]);
  });

  it("yields one event at a time to a stream, and all at once to a plain call", async () => {
    const provider = scriptedProvider();
    const answer = { toolCalls: [{ name: "f", arguments: ["{", "}"] }] };
    provider.reply(answer, { times: 2 });
    const types = async (stream: boolean) => {
      const { batches, ended } = await ask(provider, { stream });
      await ended;
      return batches.map((batch) => batch.map(({ type }) => type));
    };
    const events = ["tool-call-started", "tool-call-delta", "tool-call-delta", "usage", "finish"];
    const all = ["answer-started", ...events];
    expect(await types(true)).toEqual([["request-sent"], ...all.map((type) => [type])]);
    expect(await types(false)).toEqual([["request-sent"], all]);
  });

  it("fails before its first event, or after a scripted number of events", async () => {
    const provider = scriptedProvider();
    const error = new ProviderError("Down.", { reason: "down", delivery: "not-sent" });
    provider.fail(error);
    provider.fail(error, { afterEvents: 2, answer: { text: ["a", "b"] } });
    const first = await ask(provider);
    await expect(first.ended).rejects.toBe(error);
    expect(first.batches).toHaveLength(1);
    const second = await ask(provider);
    await expect(second.ended).rejects.toBe(error);
    expect(second.batches.slice(1).flat()).toEqual([
      { type: "answer-started", providerRequestId: "scripted" },
      { type: "text-delta", text: "a" },
    ]);
  });

  it("holds its calls until they are released, or their signal aborts", async () => {
    const provider = scriptedProvider();
    const hold = provider.hold();
    const [released, aborted] = [await ask(provider), await ask(provider)];
    await hold.reached(2);
    expect(released.batches).toHaveLength(1);
    aborted.controller.abort();
    await aborted.ended;
    hold.release();
    await released.ended;
    expect([released.batches.length, aborted.batches.length]).toEqual([5, 1]);
  });

  it("waits on the test's clock", async () => {
    const clock = manualClock();
    const provider = scriptedProvider({ clock });
    provider.reply({ text: "late", delay: "10s" });
    const { batches, ended } = await ask(provider);
    await clock.advance("9s");
    expect(batches).toHaveLength(1);
    await clock.advance("1s");
    await ended;
    expect(batches).toHaveLength(5);
  });

  it("records every call and its gateway", async () => {
    const provider = scriptedProvider();
    await text(provider, { stream: false });
    expect(provider.calls).toMatchObject([{ gateway: "test", model: "a/b", stream: false }]);
  });
});
