import { setImmediate as nextTurn } from "node:timers/promises";
import { queryObjects } from "node:v8";
import { type AnswerSink, type CompletionEvent, ProviderError } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { completionOf } from "./wire.ts";

const sent: readonly CompletionEvent[] = [
  { type: "request-sent", host: "told.test", bodySha256: "00" },
];
const said = (text: string): readonly CompletionEvent[] => [{ type: "text-delta", text }];
const finish: readonly CompletionEvent[] = [{ type: "finish", reason: "stop" }];

/** A gateway whose provider `told/a/b` pushes its answers, and a record of its calls. */
async function gatewayOf(tell: (sink: AnswerSink) => void, end: () => void = () => {}) {
  const { provider } = await createTestGateway();
  const seen = { sinks: [] as AnswerSink[], ended: 0 };
  const told = {
    ...provider.at("told"),
    complete: () => ({
      subscribe(sink: AnswerSink) {
        seen.sinks.push(sink);
        tell(sink);
        return () => {
          seen.ended++;
          end();
        };
      },
      [Symbol.asyncIterator](): never {
        throw new Error("it tells, and is not iterated");
      },
    }),
  };
  const test = await createTestGateway({
    providers: { told },
    retries: { max: 0 },
    deadlines: { firstByte: "10s" },
  });
  const ask = (fields: object = {}) =>
    test.gateway.fetch(test.chat({ model: "told/a/b", ...fields }));
  const steps = async () =>
    (await test.gateway.steps.list({ organizationId: test.key.organizationId })).data;
  return { ...test, ask, steps, seen };
}

describe("a provider that pushes its answer", () => {
  it("may push all of it before it returns", async () => {
    const { ask, steps, seen } = await gatewayOf((sink) => {
      for (const events of [sent, said("Hel"), said("lo"), finish]) sink.events(events);
      sink.ended();
    });
    const { choices } = await completionOf(ask());
    expect(choices[0]?.message.content).toBe("Hello");
    expect(seen.ended).toBe(1);
    expect(await steps()).toMatchObject([{ outcome: "completed" }]);
  });

  it("may fail before it returns, and its call is ended", async () => {
    const { ask, steps, seen } = await gatewayOf((sink) =>
      sink.failed(new ProviderError("It is down.", { reason: "down", delivery: "not-sent" })),
    );
    expect((await ask()).status).toBe(502);
    expect(seen.ended).toBe(1);
    expect(await steps()).toMatchObject([{ outcome: "failed", reason: "down" }]);
  });

  it("is ignored once its answer has ended", async () => {
    const { ask, steps, seen } = await gatewayOf((sink) => {
      for (const events of [sent, said("Hello"), finish]) sink.events(events);
      sink.ended();
      sink.events(said(" and more"));
      sink.failed(new ProviderError("Too late.", { reason: "late", delivery: "unknown" }));
      sink.ended();
    });
    const text = await (await ask({ stream: true })).text();
    for (const sink of seen.sinks) expect(sink.events(said("later"))).toBeNull();
    expect(text).toContain("Hello");
    expect(text).not.toContain("more");
    expect(await steps()).toMatchObject([{ outcome: "completed" }]);
  });

  it("waits for a client that doesn't read", async () => {
    const rooms: (Promise<void> | null)[] = [];
    const { ask, seen } = await gatewayOf((sink) => {
      for (const events of [sent, said("Hello")]) rooms.push(sink.events(events));
    });
    const answer = await ask({ stream: true });
    expect(rooms).toEqual([null, expect.any(Promise)]);
    const text = answer.text();
    await rooms[1];
    seen.sinks[0]?.events(finish);
    seen.sinks[0]?.ended();
    expect(await text).toContain("[DONE]");
  });

  it("is stopped when it stays silent", async () => {
    const { ask, clock, steps, seen } = await gatewayOf((sink) => void sink.events(sent));
    const answer = ask({ stream: true });
    const { status } = await clock.until(answer);
    expect(status).toBe(504);
    expect(clock.monotonic()).toBe(10_000);
    expect(seen.ended).toBe(1);
    expect(await steps()).toMatchObject([{ outcome: "failed", reason: "silent" }]);
  });

  it("may pass on the rest that it has read while its call is ended", async () => {
    const { ask, clock, steps, seen } = await gatewayOf(
      (sink) => void sink.events(sent),
      () => {
        for (const events of [said("Hello"), finish]) seen.sinks[0]?.events(events);
        seen.sinks[0]?.ended();
      },
    );
    const { choices } = await completionOf(clock.until(ask()));
    expect(choices[0]?.message.content).toBe("Hello");
    expect(seen.ended).toBe(1);
    expect(await steps()).toMatchObject([{ outcome: "completed" }]);
  });

  it("is recorded as it ended, even if ending its call throws", async () => {
    const { ask, clock, steps, seen } = await gatewayOf(
      (sink) => void sink.events(sent),
      () => {
        throw new Error("it can't be ended");
      },
    );
    const [first, second] = [ask({ stream: true }), ask({ stream: true })];
    expect((await clock.until(first)).status).toBe(504);
    expect((await clock.until(second)).status).toBe(504);
    expect(seen.ended).toBe(2);
    expect(await steps()).toMatchObject([{ reason: "silent" }, { reason: "silent" }]);
  });
});

describe("the log probabilities of an answer", () => {
  class Marked {}

  /** How many of a hundred are kept while the answer continues. */
  async function keptOf(stream: boolean): Promise<number> {
    const { ask, seen } = await gatewayOf((sink) => {
      sink.events(sent);
      for (let event = 0; event < 100; event++)
        sink.events([{ type: "logprobs", logprobs: Object.create(Marked.prototype) }]);
    });
    const text = ask({ stream, logprobs: true }).then((answer) => answer.text());
    while (seen.sinks.length === 0) await nextTurn();
    await nextTurn();
    const kept = queryObjects(Marked, { format: "count" });
    seen.sinks[0]?.events(finish);
    seen.sinks[0]?.ended();
    expect(await text).toContain("logprobs");
    return kept;
  }

  it("are kept for a plain answer, which repeats them", async () => {
    expect(await keptOf(false)).toBeGreaterThanOrEqual(100);
  });

  it("are not kept once a stream has sent them", async () => {
    expect(await keptOf(true)).toBeLessThan(10);
  });
});
