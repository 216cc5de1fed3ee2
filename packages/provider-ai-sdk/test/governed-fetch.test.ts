import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { ProviderError } from "@tollgate/core/provider";
import { manualClock } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { aiSdk, type Connect } from "../src/index.ts";
import { answer, callOf, callProvider, callUpstream, saidBy, startUpstream } from "./drive.ts";
import { anthropic } from "./native/anthropic.ts";
import { google } from "./native/google.ts";

const streamOf = ({ stream }: typeof anthropic.fixtures.text): Buffer =>
  answer(stream.contentType, stream.body);
const good = streamOf(anthropic.fixtures.text);

describe("the fetch of the function form", () => {
  it("sends only to configured hosts (S6)", async () => {
    const elsewhere = { hosts: ["api.anthropic.com"] };
    const { upstream, thrown, events } = await callUpstream(
      anthropic.connect,
      ({ send }) => send(good),
      {},
      elsewhere,
    );
    expect(saidBy(thrown)).toMatchObject({ reason: "host_refused", delivery: "not-sent" });
    expect(events).toEqual([]);
    expect(upstream.connections.made).toBe(0);
  });

  it("sends the attempt's trace context only if the provider is configured to", async () => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const heads: string[] = [];
    for (const options of [{}, { trace: "send" }] as const) {
      const script = ({ send }: { send(bytes: Buffer): void }) => send(good);
      const { upstream } = await callUpstream(anthropic.connect, script, { traceparent }, options);
      heads.push(upstream.requests[0]?.head ?? "");
    }
    expect(heads.map((head) => /^traceparent: /im.test(head))).toEqual([false, true]);
    const unreachable = { languageModel: () => expect.fail("Nothing asked for a model.") };
    const { problems } = aiSdk(unreachable, { trace: "send" });
    expect(problems).toEqual(["trace needs the form aiSdk(({ fetch, credential }) => …)"]);
  });

  it("sends one request per call", async () => {
    const twice: (url: string) => Connect = (url) => (connection) =>
      anthropic.connect(url)({
        ...connection,
        fetch: async (input, init) => {
          await (await connection.fetch(input, init)).text();
          return connection.fetch(input, init);
        },
      });
    const { upstream, thrown } = await callUpstream(twice, ({ send }) => send(good));
    expect(saidBy(thrown)).toMatchObject({ reason: "second_request", delivery: "unknown" });
    expect(upstream.requests).toHaveLength(1);
  });

  it("refuses a function that sends without it", async () => {
    const otherwise: (url: string) => Connect = (url) => (connection) =>
      anthropic.connect(url)({ ...connection, fetch: async () => Response.json({}) });
    const { thrown } = await callUpstream(otherwise, () => {}, { stream: false });
    expect(saidBy(thrown)).toMatchObject({ delivery: "not-sent" });
  });

  it("asks for no compression and rejects compressed answers", async () => {
    const body = gzipSync(anthropic.fixtures.text.stream.body);
    const bytes = answer("text/event-stream\r\ncontent-encoding: gzip", body);
    const { upstream, thrown } = await callUpstream(anthropic.connect, ({ send }) => send(bytes));
    expect(upstream.requests[0]?.head).toMatch(/^accept-encoding: identity$/im);
    expect(saidBy(thrown)).toMatchObject({ reason: "unexpected_encoding", delivery: "unknown" });
  });

  it("keeps the upstream's retry delay and the meaning of its code", async () => {
    const body = { type: "error", error: { type: "rate_limit_error", message: "sk-secret" } };
    const bytes = answer("application/json\r\nretry-after: 7", JSON.stringify(body), 429);
    const { thrown } = await callUpstream(anthropic.connect, ({ send }) => send(bytes));
    expect(thrown).toMatchObject({
      status: 429,
      delivery: "answered",
      retryAfterMs: 7_000,
      code: "rate_limit_exceeded",
    });
  });

  it("records the upstream's error without the credential", async () => {
    const error = {
      type: "invalid_request_error",
      message: "No: x-api-key sk-platform-secret is bad",
    };
    const bytes = answer("application/json", JSON.stringify({ type: "error", error }), 400);
    const { thrown } = await callUpstream(anthropic.connect, ({ send }) => send(bytes));
    if (!(thrown instanceof ProviderError)) throw thrown;
    expect(thrown.text).toBe("No: x-api-key [removed] is bad");
    expect(inspect(thrown)).not.toContain("is bad");
  });

  it("S15: drops a code and a field that quote the credential", async () => {
    const error = { code: "sk-platform-secret", param: "key.sk-platform" };
    const bytes = answer("application/json", JSON.stringify({ error }), 400);
    const { thrown } = await callUpstream(anthropic.connect, ({ send }) => send(bytes));
    expect(thrown).toMatchObject({ status: 400, code: null, param: null });
    expect(inspect(thrown)).not.toContain("sk-platform");
  });

  it("refuses a model name that changes the request's URL", async () => {
    for (const upstreamName of ["../../v2/secret", "a?b", "a#b", "%2e%2e"]) {
      const { upstream, thrown } = await callUpstream(google.connect, () => {}, { upstreamName });
      expect(saidBy(thrown)).toMatchObject({ status: 404, delivery: "answered" });
      expect(upstream.connections.made).toBe(0);
    }
  });

  it("asks for the platform's credential before every call", async () => {
    let reads = 0;
    const { upstream } = await callUpstream(
      anthropic.connect,
      ({ send }) => send(good),
      {},
      { apiKey: async () => `sk-${++reads}` },
    );
    expect(upstream.requests[0]?.head).toMatch(/^x-api-key: sk-1$/im);
    const failing = await callProvider(
      anthropic.connect("http://127.0.0.1:1"),
      {},
      {
        apiKey: () => Promise.reject(new Error("the vault is closed")),
      },
    );
    expect(saidBy(failing.thrown)).toMatchObject({
      reason: "credential_unavailable",
      delivery: "not-sent",
    });
  });

  it("stops waiting for a credential when the call is aborted", async () => {
    const caller = new AbortController();
    const reason = new Error("the caller left");
    const apiKey = () => {
      caller.abort(reason);
      return new Promise<string>(() => {});
    };
    const { thrown } = await callProvider(
      anthropic.connect("http://127.0.0.1:1"),
      { signal: caller.signal },
      { apiKey },
    );
    expect(thrown).toBe(reason);
  });

  it("sends nothing if the call ends before its request is released", async () => {
    const { upstream } = await callUpstream(anthropic.connect, ({ end }) => end());
    const provider = aiSdk(anthropic.connect(upstream.url), { apiKey: "sk-1" });
    const made = upstream.connections.made;
    for await (const [first] of provider.complete(callOf())) {
      expect(first?.type).toBe("request-sent");
      break;
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(upstream.connections.made).toBe(made);
    await provider.close();
  });
});

describe("the connection of the function form", () => {
  const { body } = anthropic.fixtures.text.stream;
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
  const chunk = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;

  it("stays open if the answer ends after the model stopped", async () => {
    let stopped = Promise.withResolvers<void>();
    const upstream = await startUpstream(async ({ send }) => {
      await send(`${head}\r\n\r\n${chunk}`);
      await stopped.promise;
      await send("0\r\n\r\n");
    });
    const provider = aiSdk(anthropic.connect(upstream.url), { apiKey: "sk-1" });
    for (let call = 0; call < 3; call++) {
      stopped = Promise.withResolvers();
      for await (const batch of provider.complete(callOf()))
        if (batch.some(({ type }) => type === "finish")) stopped.resolve();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(upstream.requests).toHaveLength(3);
    expect(upstream.connections.made).toBe(1);
    await provider.close();
  });

  it("closes if the model stopped but the answer does not end, and the answer is complete", async () => {
    const upstream = await startUpstream(({ send }) => send(`${head}\r\n\r\n${chunk}`));
    const clock = manualClock();
    const provider = aiSdk(anthropic.connect(upstream.url), { apiKey: "sk-1", clock });
    const kinds: string[] = [];
    for await (const batch of provider.complete(callOf())) {
      kinds.push(...batch.map(({ type }) => type));
      if (kinds.includes("finish")) setImmediate(() => clock.advance(2_000));
    }
    expect(kinds.at(-1)).toBe("finish");
    await upstream.requests[0]?.closed;
    await provider.close();
  });
});
