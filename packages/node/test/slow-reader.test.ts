import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { type AnswerHandler, type RunningServer, serve } from "../src/index.ts";
import { bodyOf } from "./body-of.ts";
import { post, rawClient } from "./raw-client.ts";

let server: RunningServer | undefined;
afterEach(() => server?.close());

const event = `data: ${"x".repeat(16_000)}\n\n`;

/** Streams as fast as it is read, and counts the requested chunks. */
function endlessStream(limit = Number.POSITIVE_INFINITY) {
  const produced = { events: 0, ended: Promise.withResolvers<void>() };
  async function* body(): AsyncGenerator<string> {
    try {
      while (produced.events < limit) {
        produced.events++;
        yield event;
      }
    } finally {
      produced.ended.resolve();
    }
  }
  const handler: AnswerHandler = {
    answer: async () => ({
      status: 200,
      headers: { "content-type": "text/event-stream" },
      body: bodyOf(body()),
    }),
  };
  return { handler, produced };
}

/** Waits until many turns of the event loop pass without a request for more. */
async function untilPaused(produced: { readonly events: number }): Promise<number> {
  for (let quiet = 0, last = -1; quiet < 200; quiet++) {
    if (produced.events !== last) {
      last = produced.events;
      quiet = 0;
    }
    await setImmediate();
  }
  return produced.events;
}

describe("a client that does not read", () => {
  it.each([
    ["30 seconds", {}],
    ["more than Node's longest timer", { writeStall: 3_000_000_000 }],
  ])(
    "pauses the producer, which goes on when the client reads again within %s",
    async (_, limits) => {
      const total = 2_000;
      const { handler, produced } = endlessStream(total);
      server = await serve(handler, { port: 0, limits });
      const client = await rawClient(server.url);
      client.socket.pause();
      client.write(post("{}", "/", "connection: close\r\n"));
      const paused = await untilPaused(produced);
      expect(paused).toBeGreaterThan(0);
      // The system's buffers on both sides and our 64 KiB are far below 32 MB.
      expect(paused).toBeLessThan(total / 2);

      client.socket.resume();
      const all = await client.closed();
      expect(all.endsWith("\r\n0\r\n\r\n")).toBe(true);
      expect(all.split("data: ").length - 1).toBe(total);
    },
  );

  it("is cut off when it leaves a stream unread beyond the write-stall limit (S40)", async () => {
    const { handler, produced } = endlessStream();
    server = await serve(handler, { port: 0, limits: { writeStall: 50 } });
    const client = await rawClient(server.url);
    client.socket.pause();
    client.write(post("{}"));
    await produced.ended.promise;
    client.socket.resume();
    expect(await client.closed()).not.toContain("\r\n0\r\n\r\n");
  });

  it("is cut off when it leaves a plain answer unread beyond the write-stall limit", async () => {
    const body = "é".repeat(16_000_000);
    const left = Promise.withResolvers<void>();
    server = await serve(
      {
        async answer(request) {
          request.signal.addEventListener("abort", () => left.resolve());
          return { status: 200, headers: { "content-type": "application/json" }, body };
        },
      },
      { port: 0, limits: { writeStall: 50 } },
    );
    const client = await rawClient(server.url);
    client.socket.pause();
    client.write(post("{}"));
    await left.promise;
    client.socket.resume();
    expect((await client.closed()).length).toBeLessThan(body.length);
  });

  it("gets a large plain answer in full, with its length, once it reads", async () => {
    const body = "é".repeat(1_000_000);
    server = await serve({ answer: async () => ({ status: 200, headers: {}, body }) }, { port: 0 });
    const answer = await fetch(server.url);
    expect(answer.headers.get("content-length")).toBe(String(Buffer.byteLength(body)));
    expect(await answer.text()).toBe(body);
  });
});
