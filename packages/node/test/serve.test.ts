import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type AnswerHandler, type RunningServer, serve } from "../src/index.ts";
import { bodyOf } from "./body-of.ts";
import { post, rawClient } from "./raw-client.ts";

let server: RunningServer | undefined;
afterEach(() => server?.close());

/** A stream that yields what the test pushes. */
function heldStream() {
  const steps = [Promise.withResolvers<string | null>()];
  async function* body(): AsyncGenerator<string> {
    for (let at = 0; ; at++) {
      const text = await steps[at]?.promise;
      if (text === null || text === undefined) return;
      yield text;
    }
  }
  const handler: AnswerHandler = {
    answer: async () => ({ status: 200, headers: {}, body: bodyOf(body()) }),
  };
  return {
    handler,
    push(text: string | null): void {
      const step = steps.at(-1);
      steps.push(Promise.withResolvers<string | null>());
      step?.resolve(text);
    },
  };
}

describe("shutting down", () => {
  it.each([
    ["by default", {}],
    ["within more than Node's longest timer", { closing: 3_000_000_000 }],
  ])(
    "stops listening, refuses further requests and lets an open stream end, %s",
    async (_, limits) => {
      const stream = heldStream();
      server = await serve(stream.handler, { port: 0, limits });
      const client = await rawClient(server.url);
      client.write(post("{}"));
      stream.push("data: 1\n\n");
      await client.until("data: 1");

      const closed = server.close();
      client.write(post("{}"));
      await expect(connects(server.url)).resolves.toBe(false);

      stream.push("data: 2\n\n");
      stream.push(null);
      const all = await client.closed();
      expect(all).toMatch(/data: 2\n\n\r\n0\r\n\r\nHTTP\/1\.1 503 /);
      expect(all).toMatch(/"code":"overloaded"/);
      await closed;
    },
  );

  it("closes its service within the same limit, and lets it finish its answers", async () => {
    const stream = heldStream();
    const asked: unknown[] = [];
    server = await serve(stream.handler, {
      port: 0,
      limits: { closing: 5_000 },
      close: async (bound) => {
        asked.push(bound);
        stream.push("data: error\n\n");
        stream.push(null);
      },
    });
    const client = await rawClient(server.url);
    client.write(post("{}"));
    stream.push("data: 1\n\n");
    await client.until("data: 1");
    await Promise.all([server.close(), server.close()]);
    expect(await client.closed()).toMatch(/data: error\n\n\r\n0\r\n\r\n$/);
    expect(asked).toEqual([{ within: 5_000 }]);
  });

  it("cuts answers that outlast the limit", async () => {
    const stream = heldStream();
    server = await serve(stream.handler, { port: 0, limits: { closing: 20 } });
    const client = await rawClient(server.url);
    client.write(post("{}"));
    stream.push("data: 1\n\n");
    await client.until("data: 1");
    await server.close();
    expect(await client.closed()).not.toContain("\r\n0\r\n\r\n");
  });
});

describe("a second close", () => {
  it("ends sooner with a shorter limit, and changes nothing with a longer one", async () => {
    const stream = heldStream();
    const bounds: unknown[] = [];
    const close = async (bound: unknown) => void bounds.push(bound);
    server = await serve(stream.handler, { port: 0, close });
    const client = await rawClient(server.url);
    client.write(post("{}"));
    stream.push("data: 1\n\n");
    await client.until("data: 1");
    const closed = server.close();
    void server.close({ within: 60_000 });
    void server.close({ within: 20 });
    await closed;
    expect(bounds).toEqual([{ within: 25_000 }, { within: 20 }]);
  });
});

describe("serving", () => {
  it("refuses connections above the limit", async () => {
    server = await serve(heldStream().handler, { port: 0, limits: { connections: 1 } });
    const first = await rawClient(server.url);
    const second = await rawClient(server.url);
    expect(await second.closed()).toBe("");
    first.socket.destroy();
  });

  it("closes connections of one address above its limit, until others have closed (H16)", async () => {
    const limits = { connectionsPerAddress: 2 };
    server = await serve(heldStream().handler, { port: 0, limits });
    const { url } = server;
    const [first, second] = [await rawClient(url), await rawClient(url)];
    expect(await (await rawClient(url)).closed()).toBe("");
    first.socket.destroy();
    await vi.waitFor(async () => {
      const next = await rawClient(url);
      next.write(post("{}"));
      await next.until("200 OK");
      next.socket.destroy();
    });
    second.socket.destroy();
  });

  it("rejects when the port is taken", async () => {
    server = await serve(heldStream().handler, { port: 0 });
    const port = Number(new URL(server.url).port);
    await expect(serve(heldStream().handler, { port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });

  it("answers 500 when a handler throws, without details of the error", async () => {
    server = await serve({ fetch: () => Promise.reject(new Error("tg_secret")) }, { port: 0 });
    const answer = await fetch(server.url);
    expect(answer.status).toBe(500);
    expect(await answer.json()).toEqual({
      error: {
        message: "The gateway failed to handle this request.",
        type: "server_error",
        param: null,
        code: "internal_error",
      },
    });
  });

  it("cuts the connection when a body fails, so that it does not look complete", async () => {
    const read = Promise.withResolvers<void>();
    async function* failing(): AsyncGenerator<string> {
      yield "data: 1\n\n";
      await read.promise;
      throw new Error("broken");
    }
    server = await serve(
      { answer: async () => ({ status: 200, headers: {}, body: bodyOf(failing()) }) },
      { port: 0 },
    );
    const client = await rawClient(server.url);
    client.write(post("{}"));
    await client.until("data: 1");
    read.resolve();
    expect(await client.closed()).not.toContain("\r\n0\r\n\r\n");
  });

  it("sends a stream's headers before its first event", async () => {
    const stream = heldStream();
    server = await serve(stream.handler, { port: 0 });
    const client = await rawClient(server.url);
    client.write(post("{}"));
    await client.until("\r\n\r\n");
    stream.push(null);
  });
});

async function connects(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const connected = await Promise.race([
    once(socket, "connect").then(() => true),
    once(socket, "error").then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return connected;
}
