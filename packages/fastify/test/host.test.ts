import { Readable } from "node:stream";
import { createGunzip, gzipSync } from "node:zlib";
import { createTestGateway, rawClient } from "@tollgate/testing";
import fastify, { type FastifyInstance } from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { tollgate } from "../src/index.ts";

const path = "/ai/v1/chat/completions";
const hello = { model: "test/tollgate/scripted", messages: [{ role: "user", content: "Hello" }] };

/** Serves an app with a test gateway until the test is over; `build` comes before the plugin. */
async function served(build: (app: FastifyInstance) => void = () => {}) {
  const test = await createTestGateway();
  const app = fastify({ forceCloseConnections: true });
  build(app);
  await app.register(tollgate, { gateway: test.gateway, prefix: "/ai" });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  onTestFinished(async () => {
    await app.close();
    await test.gateway.close();
  });
  const ask = (
    body: string | Uint8Array<ArrayBuffer> = JSON.stringify(hello),
    headers: Record<string, string> = {},
  ) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${test.key.secret}`,
        "content-type": "application/json",
        ...headers,
      },
      body,
    });
  return { ...test, app, url, ask };
}

describe("a Fastify app with its own hooks", () => {
  it("keeps its own headers and sees the end of each answer", async () => {
    const ends: number[] = [];
    const { ask } = await served((app) => {
      app.addHook("onRequest", async (_request, reply) => void reply.header("x-host", "kept"));
      app.addHook("onResponse", async (_request, reply) => void ends.push(reply.raw.statusCode));
    });
    const answer = await ask();
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-host")).toBe("kept");
    await answer.text();
    await expect.poll(() => ends).toEqual([200]);
  });

  it("refuses a caller in a hook, whatever the content type", async () => {
    const { ask, provider } = await served((app) => {
      app.addHook("preHandler", async (_request, reply) => reply.code(418).send("not here"));
    });
    expect((await ask()).status).toBe(418);
    for (const type of ["application/json;", "application/json\ta", "text/plain"])
      expect((await ask(undefined, { "content-type": type })).status).toBeGreaterThan(400);
    expect(provider.calls).toEqual([]);
  });

  it("handles errors of its own hooks in its own error handler", async () => {
    const { ask, provider } = await served((app) => {
      app.setErrorHandler((_error, _request, reply) => reply.code(500).send("the host's answer"));
      app.addHook("preHandler", async () => {
        throw new Error("in the host");
      });
    });
    const answer = await ask();
    expect(await answer.text()).toBe("the host's answer");
    expect(provider.calls).toEqual([]);
  });

  it("gets errors outside the gateway in its own error handler", async () => {
    const { gateway } = await createTestGateway();
    const app = fastify();
    onTestFinished(() => gateway.close());
    app.setErrorHandler((error, _request, reply) => reply.code(500).send(String(error)));
    const failing = { answer: () => Promise.reject(new Error("outside the gateway")) };
    await app.register(tollgate, { gateway: { ...gateway, ...failing }, prefix: "/ai" });
    const answer = await app.inject({ method: "GET", url: "/ai/v1/models" });
    expect(answer.statusCode).toBe(500);
    expect(answer.body).toBe("Error: outside the gateway");
  });

  it("can decompress bodies before the gateway reads them", async () => {
    const { ask, provider } = await served((app) => {
      app.addHook("preParsing", async (_request, _reply, payload) => payload.pipe(createGunzip()));
    });
    const answer = await ask(gzipSync(JSON.stringify(hello)), { "content-encoding": "gzip" });
    expect(answer.status).toBe(200);
    expect(provider.calls[0]?.request.messages).toEqual(hello.messages);
  });

  it("can replace bodies with its own text", async () => {
    const { ask, provider } = await served((app) => {
      app.addHook("preParsing", async () => Readable.from(JSON.stringify(hello)));
    });
    expect((await ask("{}")).status).toBe(200);
    expect(provider.calls[0]?.request.messages).toEqual(hello.messages);
  });

  it("keeps its own parsers and limits outside the gateway's scope", async () => {
    const { url } = await served((app) => {
      app.post("/own", async (request) => request.body);
    });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/own`, { method: "POST", headers, body: '{"a":1}' });
    expect(await answer.json()).toEqual({ a: 1 });
    const text = await fetch(`${url}/own`, { method: "POST", body: "a" });
    expect(await text.text()).toBe("a");
  });

  it("is not held up by an open stream whose client leaves", async () => {
    const { app, url, key, provider } = await served();
    const held = provider.hold();
    const client = await rawClient(url);
    client.post({ ...hello, stream: true }, { secret: key.secret, path });
    await held.reached();
    client.close();
    await app.close();
    await expect.poll(() => provider.calls[0]?.signal.aborted).toBe(true);
  });
});

describe("registering", () => {
  it("mounts a gateway at two prefixes, but fails at start if a prefix repeats", async () => {
    const { gateway } = await createTestGateway();
    onTestFinished(() => gateway.close());
    const app = fastify();
    await app.register(tollgate, { gateway, prefix: "/ai" });
    await app.register(tollgate, { gateway, prefix: "/too" });
    for (const prefix of ["/ai", "/too"]) {
      const answer = await app.inject({ method: "GET", url: `${prefix}/v1/models` });
      expect(answer.statusCode).toBe(401);
    }
    const twice = fastify();
    for (let time = 0; time < 2; time++) twice.register(tollgate, { gateway, prefix: "/ai" });
    await expect(twice.ready()).rejects.toThrow("already declared for route '/ai");
  });

  it.each([
    [{}, "register(tollgate, { gateway }) needs a gateway from createGateway"],
    [{ gateway: {} }, "but got another object"],
    [{ writeStall: 0 }, "`writeStall` must be a whole number of milliseconds, 1 or more."],
    [{ prefix: "/a%20b" }, "Fastify matches decoded paths: decode the prefix /a%20b."],
  ])("fails at startup with a message for %o", async (options, message) => {
    const { gateway } = await createTestGateway();
    onTestFinished(() => gateway.close());
    const valid = "prefix" in options || "writeStall" in options ? { gateway } : {};
    const app = fastify();
    Reflect.apply(app.register, app, [tollgate, { ...valid, ...options }]);
    await expect(app.ready()).rejects.toThrow(message);
  });
});
