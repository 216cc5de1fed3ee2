import { createHash } from "node:crypto";
import type { CompletionEvent } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { callOf, connected, credential, httpAnswer, outcomeOf } from "./drive.ts";
import type { AnswerFixture, CreateProvider, NativeAnswer, ProviderFixtures } from "./fixtures.ts";

/** How a provider reads successful answers. */
export function describeAnswers(create: CreateProvider, fixtures: ProviderFixtures): void {
  describe("answers", () => {
    for (const kind of ["text", "toolCall"] as const)
      for (const form of ["stream", "plain"] as const)
        it(`reads ${kind} from a ${form === "plain" ? "plain body" : "stream"}`, async () => {
          const { provider } = await connected(create, ({ send }) =>
            send(httpAnswer(fixtures[kind][form])),
          );
          const call = callOf({ stream: form === "stream" });
          const { events, thrown } = await outcomeOf(provider, call);
          expect(thrown).toBeNull();
          expect(resultOf(events)).toEqual(fixtures[kind].expected);
          expect(events.filter(({ type }) => type === "finish")).toHaveLength(1);
          expect(events.filter(emptyDelta)).toEqual([]);
        });

    it("reports the request in a batch of its own before sending it", async () => {
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.text.stream)),
      );
      const batches = provider.complete(callOf())[Symbol.asyncIterator]();
      const first = await batches.next();
      expect(upstream.connections.made).toBe(0);
      for (let next = await batches.next(); !next.done; next = await batches.next());
      const body = upstream.requests[0]?.body ?? "";
      const bodySha256 = createHash("sha256").update(body).digest("hex");
      const host = new URL(upstream.url).host;
      expect(first.value).toEqual([{ type: "request-sent", host, bodySha256 }]);
    });

    it("gives the same output if the bytes arrive one by one", async () => {
      for (const fixture of [fixtures.text, fixtures.toolCall])
        expect(await arriving(create, fixture.stream, 1)).toEqual(fixture.expected);
    });

    it("gives the same output wherever the bytes are split", async () => {
      for (const size of [2, 3, 5, 7, 11, 64])
        expect(await arriving(create, fixtures.text.stream, size)).toEqual(fixtures.text.expected);
    });

    it("keeps its connection for the next call", async () => {
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.text.stream)),
      );
      for (let call = 0; call < 5; call++) {
        await outcomeOf(provider, callOf());
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(upstream.requests).toHaveLength(5);
      expect(upstream.connections.made).toBeLessThan(5);
    });

    it("sends the platform's credential on a platform connection", async () => {
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.text.stream)),
      );
      expect(provider.connection).toBe("platform");
      await outcomeOf(provider, callOf());
      expect(upstream.requests[0]?.head).toContain(credential);
    });

    it("sends the organization's own credential on a customer-owned connection", async () => {
      const script = connected(
        create,
        ({ send }) => send(httpAnswer(fixtures.text.stream)),
        "customer",
      );
      const { upstream, provider } = await script;
      expect(provider.connection).toBe("customer");
      await outcomeOf(provider, callOf({ credential: "credential-of-acme" }));
      expect(upstream.requests[0]?.head).toContain("credential-of-acme");
      expect(upstream.requests[0]?.head).not.toContain(credential);
    });
  });
}

/** The result of an answer that arrives in pieces of `size` bytes. */
async function arriving(
  create: CreateProvider,
  answer: NativeAnswer,
  size: number,
): Promise<AnswerFixture["expected"]> {
  const { provider } = await connected(create, async ({ send }) => {
    const bytes = httpAnswer(answer);
    for (let at = 0; at < bytes.length; at += size) await send(bytes.subarray(at, at + size));
  });
  return resultOf((await outcomeOf(provider, callOf())).events);
}

/** The combined events, without ids and names that the upstream makes up. */
function resultOf(events: readonly CompletionEvent[]): AnswerFixture["expected"] {
  const text: string[] = [];
  const calls: { name: string; arguments: string }[] = [];
  const usages = events.flatMap((event) => (event.type === "usage" ? [event.usage] : []));
  for (const event of events) {
    if (event.type === "text-delta") text.push(event.text);
    if (event.type === "tool-call-started")
      calls[event.index] = { name: event.name, arguments: "" };
    const call = event.type === "tool-call-delta" ? calls[event.index] : undefined;
    if (call && event.type === "tool-call-delta") call.arguments += event.arguments;
  }
  const finish = events.find((event) => event.type === "finish");
  if (!finish) throw new Error("the answer did not finish");
  return {
    text: text.length === 0 ? null : text.join(""),
    toolCalls: calls,
    usage: Object.assign({}, ...usages),
    finishReason: finish.reason,
  };
}

function emptyDelta(event: CompletionEvent): boolean {
  return "text" in event
    ? event.text === ""
    : event.type === "tool-call-delta" && event.arguments === "";
}
