import { setImmediate } from "node:timers/promises";
import type { CompletionEvent, Provider } from "@tollgate/core/provider";
import type { RawClient } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { bodies, closing, conversations, drive, endpoints } from "./drive.ts";

const pieces = 1_400;
const piece = "x".repeat(16_000);

/** A provider that produces 22 MB, or up to `last` pieces, as fast as they are read, and counts the pieces read. */
function floodProvider() {
  const produced = { pieces: 0, last: pieces, ended: Promise.withResolvers<void>() };
  async function* complete(): AsyncGenerator<readonly CompletionEvent[]> {
    try {
      yield [{ type: "request-sent", host: "flood.test", bodySha256: "0".repeat(64) }];
      yield [{ type: "answer-started" }];
      while (produced.pieces < produced.last) {
        produced.pieces++;
        yield [{ type: "text-delta", text: piece }];
      }
      yield [
        { type: "usage", usage: { promptTokens: 1, completionTokens: pieces } },
        { type: "finish", reason: "stop" },
      ];
    } finally {
      produced.ended.resolve();
    }
  }
  const provider: Provider = {
    contract: 1,
    connection: "platform",
    models: {},
    open: true,
    vendor: null,
    problems: [],
    complete,
    async close() {},
  };
  return { provider, produced };
}

/** Waits until the provider was not read for many turns of the event loop. */
async function untilPaused(produced: { readonly pieces: number }): Promise<number> {
  for (let quiet = 0, last = -1; quiet < 500; quiet++) {
    if (produced.pieces !== last) {
      last = produced.pieces;
      quiet = 0;
    }
    await setImmediate();
  }
  return produced.pieces;
}

/** Clients that read or send slowly. */
export function describeSlowClients(binding: Binding): void {
  async function driveFlood(path: (typeof conversations)[number], writeStall: number) {
    const { provider, produced } = floodProvider();
    // More than all buffers on the way.
    const limits = { answerBytes: 67_108_864 };
    const options = { providers: { flood: provider }, limits };
    const driven = await drive(binding, { writeStall }, options);
    const client = await driven.rawClient();
    client.pause();
    const { secret } = driven.key;
    const flood = { ...bodies[path](), model: "flood/some/model", stream: true };
    client.post(flood, { secret, path: `${driven.prefix}${path}`, headers: ["connection: close"] });
    return { client, produced, driven };
  }

  describe("a slow client", () => {
    it.each(conversations)(
      "of %s pauses the provider while it doesn't read, and receives everything once it does (S25)",
      async (path) => {
        const { client, produced } = await driveFlood(path, 30_000);
        const paused = await untilPaused(produced);
        expect(paused).toBeGreaterThan(0);
        expect(paused).toBeLessThan(pieces / 2);
        produced.last = paused + 100;
        client.resume();
        const all = await client.ended();
        expect(all.split(`"${piece}"`).length - 1).toBe(produced.last);
        expect(all).toContain(closing[path]);
      },
      30_000,
    );

    it.each(conversations)(
      "of %s is disconnected if it leaves an answer unread for too long (S40)",
      async (path) => {
        const { client, produced } = await driveFlood(path, 50);
        await produced.ended.promise;
        client.resume();
        expect(await client.ended()).not.toContain(closing[path]);
      },
    );

    it.each(conversations)(
      "of %s takes room for a long plain answer until it has read it, or has left",
      async (path) => {
        const driven = await drive(binding, {}, { limits: { answerBytes: 33_554_432 } });
        const { gateway, prefix, provider } = driven;
        const { secret } = driven.key;
        const text = "x".repeat(16_777_216);
        const ask = async (): Promise<RawClient> => {
          const client = await driven.rawClient();
          client.pause();
          provider.reply(text);
          const headers = ["connection: close"];
          client.post(bodies[path](), { secret, path: `${prefix}${path}`, headers });
          return client;
        };
        const admitted = async (count: number): Promise<void> => {
          while (gateway.status().admitted !== count || gateway.status().openSteps > 0)
            await setImmediate();
        };
        const reading = await ask();
        while (provider.calls.length < 1) await setImmediate();
        await admitted(1);
        const leaving = await ask();
        while (provider.calls.length < 2) await setImmediate();
        await admitted(2);
        leaving.reset();
        await admitted(1);
        reading.resume();
        const all = await reading.ended();
        // The sizes of chunks, if the binding doesn't announce the length.
        expect(all.replaceAll(/\r\n[0-9a-f]+\r\n/g, "")).toContain(text);
        await admitted(0);
      },
      30_000,
    );

    it.each(endpoints)(
      "of %s does not delay others, however many send their requests slowly (S40)",
      async (path) => {
        const driven = await drive(binding);
        const head = `POST ${driven.prefix}${path} HTTP/1.1\r\nhost: a\r\n`;
        for (let number = 0; number < 50; number++) {
          const client = await driven.rawClient();
          client.send(number % 2 === 0 ? head : `${head}content-length: 100\r\n\r\n{`);
        }
        expect((await driven.post(path, bodies[path]())).status).toBe(200);
        expect(driven.provider.calls).toHaveLength(1);
      },
    );
  });
}
