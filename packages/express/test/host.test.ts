import { once } from "node:events";
import { countingIds, createTestGateway, rawClient, type TestGateway } from "@tollgate/testing";
import compression from "compression";
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { tollgate } from "../src/index.ts";
import { serveApp } from "./serve-app.ts";

/** Serves an app with a test gateway until the test is over. */
async function served(build: (app: Express, test: TestGateway) => void) {
  const test = await createTestGateway();
  const app = express();
  build(app, test);
  const { url, close } = await serveApp(app);
  onTestFinished(async () => {
    await close();
    await test.gateway.close();
  });
  const ask = async (
    fields: object = {},
    prefix = "/ai",
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const { headers: signed } = test.chat();
    const body = JSON.stringify({
      model: "test/tollgate/scripted",
      messages: [{ role: "user", content: "Hello" }],
      ...fields,
    });
    const all = { ...Object.fromEntries(signed), ...headers };
    return fetch(`${url}${prefix}/v1/chat/completions`, { method: "POST", headers: all, body });
  };
  return { ...test, url, ask };
}

describe("an Express app with its own middleware", () => {
  it("keeps its own headers and sees the end of each answer", async () => {
    const ends: number[] = [];
    const log: RequestHandler = (_request, response, next) => {
      response.setHeader("x-host", "kept");
      response.on("finish", () => ends.push(response.statusCode));
      next();
    };
    const { ask } = await served((app, { gateway }) => app.use(log).use("/ai", tollgate(gateway)));
    const answer = await ask();
    expect(answer.headers.get("x-host")).toBe("kept");
    await answer.text();
    expect(ends).toEqual([200]);
  });

  it("compresses plain answers but not streams", async () => {
    const compressing = compression({ threshold: 0 });
    const test = await served((app, { gateway }) =>
      app.use(compressing).use("/ai", tollgate(gateway)),
    );
    // The second one is written in pieces.
    for (const times of [1_000, 40_000]) {
      test.provider.reply("plain".repeat(times));
      const plain = await test.ask();
      expect(plain.headers.get("content-encoding")).toMatch(/gzip|br|zstd/);
      expect(await plain.text()).toContain("plain".repeat(times));
    }

    test.provider.reply({ text: ["first ", "second"] });
    const held = test.provider.hold({ afterEvents: 2 });
    const client = await rawClient(test.url);
    onTestFinished(() => client.reset());
    client.post(
      {
        model: "test/tollgate/scripted",
        messages: [{ role: "user", content: "Hi" }],
        stream: true,
      },
      {
        secret: test.key.secret,
        path: "/ai/v1/chat/completions",
        headers: ["accept-encoding: gzip"],
      },
    );
    await client.until("first ");
    held.release();
    await client.until("data: [DONE]");
    expect(client.received()).toMatch(/cache-control: no-cache, no-transform/i);
  });

  it("mounts two gateways, and one gateway twice", async () => {
    const other = await createTestGateway({ ids: countingIds(1) });
    onTestFinished(() => other.gateway.close());
    const { ask, provider } = await served((app, { gateway }) =>
      app
        .use("/ai", tollgate(gateway))
        .use("/too", tollgate(gateway))
        .use("/other", tollgate(other.gateway)),
    );
    expect((await ask()).status).toBe(200);
    expect((await ask({}, "/too")).status).toBe(200);
    expect(provider.calls).toHaveLength(2);
    expect((await ask({}, "/other")).status).toBe(401);
  });

  it("refuses a body that middleware read and discarded, without waiting for it", async () => {
    const reading: RequestHandler = async (request, _response, next) => {
      request.resume();
      await once(request, "end");
      next();
    };
    const { ask, provider } = await served((app, { gateway }) =>
      app.use(reading).use("/ai", tollgate(gateway)),
    );
    const answer = await ask();
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("The request body was already read.");
    expect(provider.calls).toEqual([]);
  });

  it("sees duplicate JSON keys if a parser keeps the raw body", async () => {
    const keeping = express.json({
      verify: (request, _response, bytes) => Object.assign(request, { rawBody: bytes }),
    });
    const { url, key, provider } = await served((app, { gateway }) =>
      app.use(keeping).use("/ai", tollgate(gateway)),
    );
    const answer = await fetch(`${url}/ai/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: '{"model":"a/b/c","model":"test/tollgate/scripted","messages":[]}',
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("same member twice");
    expect(provider.calls).toEqual([]);
  });

  it("gets errors outside the gateway in its own error handler", async () => {
    const failures: unknown[] = [];
    const handler: ErrorRequestHandler = (error, _request, response, _next) => {
      failures.push(error);
      response.status(500).send("the host's own answer");
    };
    const failing = { answer: () => Promise.reject(new Error("outside the gateway")) };
    const { ask } = await served((app, { gateway }) =>
      app.use("/ai", tollgate({ ...gateway, ...failing })).use(handler),
    );
    const answer = await ask();
    expect(answer.status).toBe(500);
    expect(await answer.text()).toBe("the host's own answer");
    expect(failures).toEqual([new Error("outside the gateway")]);
  });

  it("answers its other routes as before", async () => {
    const { url, ask } = await served((app, { gateway }) => {
      app.use("/ai", tollgate(gateway));
      app.get("/health", (_request, response) => void response.send("well"));
    });
    expect((await ask()).status).toBe(200);
    expect(await (await fetch(`${url}/health`)).text()).toBe("well");
  });
});

describe("mounting an invalid gateway", () => {
  it("fails at startup with a message", async () => {
    const { gateway } = await createTestGateway();
    const wrong = (value: unknown, options?: unknown) => () =>
      Reflect.apply(tollgate, undefined, [value, options]);
    expect(wrong(undefined)).toThrow("tollgate(gateway) needs a gateway from createGateway");
    expect(wrong(Promise.resolve(gateway))).toThrow("await it first");
    expect(wrong(gateway, { writeStall: "30s" })).toThrow(
      "`writeStall` must be a whole number of milliseconds, 1 or more.",
    );
    await gateway.close();
  });
});
