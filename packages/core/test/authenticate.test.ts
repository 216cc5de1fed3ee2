import { inspect } from "node:util";
import { type Authenticate, createGateway, GatewayError, type HostCaller } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { written } from "./written.ts";

const organizationId = "organization-1";
const ada: HostCaller = { organizationId, userId: "ada", label: "web" };

/** An `authenticate` that knows one cookie. */
const byCookie: Authenticate = (request) =>
  request.headers.get("cookie") === "session=ada" ? ada : null;

const signedIn = { cookie: "session=ada", authorization: "" };
const models = (headers: Record<string, string>) =>
  new Request("http://in-process/v1/models", { headers });

describe("the host's `authenticate`", () => {
  it("identifies callers; requests that it doesn't know need an API key", async () => {
    const { gateway, key, chat } = await createTestGateway({ authenticate: byCookie });
    expect((await gateway.fetch(chat({}, signedIn))).status).toBe(200);
    expect((await gateway.fetch(chat())).status).toBe(200);
    expect((await gateway.fetch(chat({}, { cookie: "session=ada" }))).status).toBe(200);
    expect((await gateway.fetch(chat({}, { cookie: "", authorization: "" }))).status).toBe(401);
    expect((await gateway.fetch(models(signedIn))).status).toBe(200);
    expect((await gateway.fetch(models({}))).status).toBe(401);
    const { data } = await gateway.activity.list({ organizationId });
    expect(data.map(({ userId, source }) => [userId, source])).toEqual([
      ["ada", "api"],
      [key.userId, "api"],
      ["ada", "api"],
    ]);
  });

  it("treats undefined as an unknown caller", async () => {
    const { gateway, chat } = await createTestGateway({ authenticate: () => undefined });
    const answer = await gateway.fetch(chat({}, { authorization: "" }));
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ error: { code: "missing_api_key" } });
    expect((await gateway.fetch(chat())).status).toBe(200);
  });

  it("gives 401 without a retry if it throws that a sign-in has expired", async () => {
    const log = eventLog();
    const { gateway, chat } = await createTestGateway({
      observers: log.observers,
      authenticate: async () => {
        throw new GatewayError("unauthenticated", "Your session has expired. Sign in again.");
      },
    });
    const answer = await gateway.fetch(chat());
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([401, "false"]);
    expect(await answer.json()).toMatchObject({
      error: { code: "unauthenticated", message: "Your session has expired. Sign in again." },
    });
    expect(log.seen.map(({ type }) => type)).not.toContain("request.failed");
  });

  it("runs once per request, with the original request", async () => {
    const seen: string[] = [];
    const { gateway, chat } = await createTestGateway({
      authenticate: async (request) => {
        seen.push(`${request.method} ${new URL(request.url).pathname}`);
        return ada;
      },
    });
    await gateway.fetch(chat());
    expect((await gateway.fetch(chat({ top_k: 1 }))).status).toBe(400);
    await gateway.fetch(models({}));
    await gateway.handlers.listModels(models({}));
    expect(seen).toEqual([
      "POST /v1/chat/completions",
      "POST /v1/chat/completions",
      "GET /v1/models",
      "GET /v1/models",
    ]);
  });

  it("doesn't run for a caller named with `as`", async () => {
    const authenticate = () => expect.fail("it was asked");
    const { gateway, chat } = await createTestGateway({ authenticate });
    expect((await gateway.as(ada).fetch(chat())).status).toBe(200);
  });

  it("uses the key record of its caller: revoking it rejects the next request", async () => {
    const { gateway, chat } = await createTestGateway({ authenticate: byCookie });
    expect((await gateway.fetch(chat({}, signedIn))).status).toBe(200);
    await gateway.keys.revoke({ organizationId, userId: "ada" });
    for (const fields of [{}, { top_k: 1 }])
      expect((await gateway.fetch(chat(fields, signedIn))).status).toBe(401);
    expect((await gateway.fetch(models(signedIn))).status).toBe(401);
  });

  const canary = "canary-of-the-host";
  const failures: readonly (readonly [string, Authenticate])[] = [
    [
      "throws",
      () => {
        throw new Error(canary);
      },
    ],
    ["rejects", () => Promise.reject(new Error(canary))],
    ["throws something other than an error", () => Promise.reject(canary)],
    // @ts-expect-error a caller is more than a name
    ["returns a name", () => canary],
    ["returns no user", () => ({ ...ada, userId: "" })],
    ["returns an unknown data class", () => ({ ...ada, defaultDataClass: canary })],
    ["returns an invalid pattern", () => ({ ...ada, models: [canary] })],
    ["takes too long", () => new Promise(() => {})],
  ];

  it.each(failures)(
    "that %s gives 503 without leaking its message",
    async (_name, authenticate) => {
      const log = eventLog();
      const { observers } = log;
      const test = await createTestGateway({ authenticate, observers });
      const { gateway, clock, provider, chat } = test;
      const before = await written(gateway);
      const said: string[] = [];
      for (const request of [chat(), chat({ stream: true }), models({})]) {
        const answer = await clock.until(gateway.fetch(request));
        expect(answer.status).toBe(503);
        const { error } = JSON.parse(await answer.clone().text());
        expect(error).toMatchObject({ code: "authentication_unavailable", type: "server_error" });
        said.push(inspect([...answer.headers]), await answer.text());
      }
      const code = "authentication_unavailable";
      expect(log.seen.filter((event) => "requestId" in event)).toMatchObject(
        [1, 2, 3].flatMap(() => [
          { type: "request.received" },
          { type: "request.failed", code },
          { type: "answer.failed", code },
          { type: "request.answered", code },
        ]),
      );
      expect([...said, inspect(log.seen)].join()).not.toContain(canary);
      expect(provider.calls).toEqual([]);
      expect(await written(gateway)).toEqual(before);
    },
  );

  it("may take ten seconds, and leaves no timer behind", async () => {
    const { gateway, clock, chat } = await createTestGateway({ authenticate: byCookie });
    await gateway.fetch(chat({}, signedIn));
    const timers = clock.timers();
    await gateway.fetch(chat({}, signedIn));
    expect(clock.timers()).toBe(timers);
    const slow = await createTestGateway({ authenticate: () => new Promise(() => {}) });
    let ended = false;
    const asked = slow.gateway.fetch(slow.chat()).finally(() => {
      ended = true;
    });
    await slow.clock.advance("9999ms");
    expect(ended).toBe(false);
    await slow.clock.advance("1ms");
    expect((await asked).status).toBe(503);
  });

  it("must be a function", () => {
    const options = { store: memoryStore(), providers: {}, authenticate: "cookie" };
    // @ts-expect-error it must be a function
    expect(() => createGateway(options)).toThrow("`authenticate` must be a function.");
  });
});
