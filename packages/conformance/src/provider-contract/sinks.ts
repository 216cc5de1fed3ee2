import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type CompletionEvent,
  type Provider,
  type ProviderCall,
  ProviderError,
} from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { callOf, connected, httpAnswer, outcomeOf } from "./drive.ts";
import type { CreateProvider, ProviderFixtures } from "./fixtures.ts";

/** Turns of the event loop after which everything sent within one machine has arrived. */
const turns = 50;

/** How a provider delivers its answers to a sink. Skips providers that only support iteration. */
export function describeSinks(create: CreateProvider, fixtures: ProviderFixtures): void {
  describe("answers through a sink", () => {
    for (const kind of ["text", "toolCall"] as const)
      for (const form of ["stream", "plain"] as const)
        it(`are the same as by iteration: ${kind}, ${form}`, async () => {
          const script = connected(create, ({ send }) => send(httpAnswer(fixtures[kind][form])));
          const { provider } = await script;
          const call = callOf({ stream: form === "stream" });
          const told = readBySink(provider, call);
          if (told === null) return;
          expect(await told.end).toEqual({ ended: true });
          const { events } = await outcomeOf(provider, call);
          expect(told.batches.flat()).toEqual(events);
        });

    it("end with the failure, after the events before it", async () => {
      const { provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.failing)),
      );
      const told = readBySink(provider, callOf());
      if (told === null) return;
      const { events, thrown } = await outcomeOf(provider, callOf());
      expect(await told.end).toEqual({ reason: reasonOf(thrown) });
      expect(told.batches.flat()).toEqual(events);
    });

    it("are sent and delivered no faster than the sink accepts them", async () => {
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.text.stream)),
      );
      const told = readBySink(provider, callOf(), { waits: true });
      if (told === null) return;
      await manyTurns();
      expect([told.batches.flat().map(({ type }) => type), upstream.connections.made]).toEqual([
        ["request-sent"],
        0,
      ]);
      for (let batches = 2; ; batches++) {
        told.goOn();
        if (await Promise.race([told.end, told.next()])) break;
        await manyTurns();
        expect(told.batches).toHaveLength(batches);
      }
      expect(await told.end).toEqual({ ended: true });
    });

    it("close the connection and deliver nothing more when they are cancelled", async () => {
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.cut, "until-closed")),
      );
      const told = readBySink(provider, callOf(), { waits: true });
      if (told === null) return;
      told.goOn();
      await told.next();
      const seen = told.batches.length;
      told.cancel();
      told.goOn();
      await upstream.requests[0]?.closed;
      await manyTurns();
      expect(told.batches).toHaveLength(seen);
      expect(await Promise.race([told.end, "nothing"])).toBe("nothing");
    });
  });
}

type End = { readonly ended: true } | { readonly reason: string };

/** Reads an answer through a sink that accepts events at once, or only when allowed. Null if the provider has no sink. */
function readBySink(provider: Provider, call: ProviderCall, { waits = false } = {}) {
  const batches: (readonly CompletionEvent[])[] = [];
  const end = Promise.withResolvers<End>();
  let goOn = (): void => {};
  let arrived = Promise.withResolvers<null>();
  const cancel = provider.complete(call).subscribe?.({
    events(events) {
      batches.push(events);
      arrived.resolve(null);
      if (!waits) return null;
      return new Promise((resolve) => {
        goOn = resolve;
      });
    },
    ended: () => end.resolve({ ended: true }),
    failed: (thrown) => end.resolve({ reason: reasonOf(thrown) }),
  });
  if (cancel === undefined) return null;
  return {
    batches,
    end: end.promise,
    cancel,
    goOn(): void {
      arrived = Promise.withResolvers();
      goOn();
    },
    /** Resolves with null when the next batch arrives. */
    next: () => arrived.promise,
  };
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof ProviderError ? thrown.reason : String(thrown);
}

async function manyTurns(): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn();
}
