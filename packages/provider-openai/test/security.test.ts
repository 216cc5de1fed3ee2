import { inspect } from "node:util";
import { ProviderError } from "@tollgate/core/provider";
import { scriptedUpstream } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openaiCompatible } from "../src/index.ts";
import {
  callOf,
  callProvider,
  callUpstream,
  chunked,
  done,
  finishChunk,
  kinds,
  said,
  streamHead,
} from "./drive.ts";

const good = streamHead + chunked(finishChunk + done) + chunked("");

describe("a request that leaves", () => {
  it("S6: cannot choose its host", async () => {
    const upstream = await scriptedUpstream(({ send }) => send(good));
    const provider = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: null });
    const hosts = [
      "http://elsewhere/",
      "//elsewhere",
      "@elsewhere",
      "x#",
      "../..",
      "a\\b",
      "\r\nhost: elsewhere",
    ];
    for (const model of hosts) {
      const request = { messages: [], user: model, api_base: model, base_url: model };
      for await (const _ of provider.complete(callOf({ model, request })));
    }
    for (const { head } of upstream.requests) {
      expect(head.split("\r\n")[0]).toBe("POST /v1/chat/completions HTTP/1.1");
      expect(head).toContain(`host: ${new URL(upstream.url).host}\r\n`);
    }
    expect(upstream.requests).toHaveLength(hosts.length);
    await provider.close();
    await upstream.close();
  });

  it("S7: follows no redirect", async () => {
    const canary = await scriptedUpstream(() => {});
    for (const status of [300, 301, 302, 303, 304, 307, 308]) {
      const { thrown } = await callUpstream(({ send }) =>
        send(`HTTP/1.1 ${status} Moved\r\nlocation: ${canary.url}/v1\r\ncontent-length: 0\r\n\r\n`),
      );
      expect(said(thrown)).toEqual({ reason: "redirect_refused", delivery: "answered", status });
    }
    expect(canary.connections.made).toBe(0);
    await canary.close();
  });

  it("S13: has exactly the provider's own headers, whatever its content", async () => {
    const upstream = await scriptedUpstream(({ send }) => send(good));
    const provider = openaiCompatible({
      baseURL: upstream.url,
      apiKey: async () => "sk-platform-secret",
      headers: { "X-Title": "App" },
    });
    const anything = fc.record({ model: fc.string(), user: fc.string(), stream: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(anything, async ({ model, user, stream }) => {
        const call = callOf({
          model,
          stream,
          request: { messages: [], user },
          credential: "sk-of-the-caller",
        });
        for await (const _ of provider.complete(call));
        const { head = "", body = "" } = upstream.requests.at(-1) ?? {};
        expect(head.split("\r\n").slice(1)).toEqual([
          `host: ${new URL(upstream.url).host}`,
          "connection: keep-alive",
          "user-agent: tollgate",
          "x-title: App",
          "content-type: application/json",
          "accept-encoding: identity",
          `accept: ${stream ? "text/event-stream, application/json" : "application/json"}`,
          "authorization: Bearer sk-platform-secret",
          `content-length: ${Buffer.byteLength(body)}`,
        ]);
        expect(head + body).not.toContain("sk-of-the-caller");
      }),
      { numRuns: 100 },
    );
    await provider.close();
    await upstream.close();
  });
});

describe("the trace context of an attempt", () => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

  it("is sent only if the provider is configured to, and never more than `traceparent`", async () => {
    const heads: string[] = [];
    for (const options of [{}, { trace: "none" }, { trace: "send" }] as const) {
      const { upstream } = await callUpstream(({ send }) => send(good), { traceparent }, options);
      heads.push(upstream.requests[0]?.head ?? "");
    }
    expect(heads.map((head) => head.includes(`traceparent: ${traceparent}`))).toEqual([
      ...[false, false, true],
    ]);
    expect(heads.join("")).not.toMatch(/tracestate|baggage/i);
    const { upstream } = await callUpstream(({ send }) => send(good), {}, { trace: "send" });
    expect(upstream.requests[0]?.head).not.toContain("traceparent");
  });
});

describe("a credential", () => {
  it("is requested before every call", async () => {
    let asked = 0;
    const upstream = await scriptedUpstream(({ send }) => send(good));
    const provider = openaiCompatible({ baseURL: upstream.url, apiKey: () => `sk-${++asked}` });
    for (let call = 0; call < 2; call++) for await (const _ of provider.complete(callOf()));
    expect(upstream.requests.map(({ head }) => /Bearer (.*)/.exec(head)?.[1])).toEqual([
      "sk-1",
      "sk-2",
    ]);
    await provider.close();
    await upstream.close();
  });

  it("is not sent if the upstream needs none", async () => {
    const { upstream } = await callUpstream(({ send }) => send(good), {}, { apiKey: null });
    expect(upstream.requests[0]?.head).not.toMatch(/authorization/i);
  });

  it("fails the call before it leaves if it is unavailable or cannot be sent", async () => {
    const failing = (): never => {
      throw new Error("secret store: sk-platform-secret");
    };
    for (const apiKey of [failing, async () => failing(), () => "", () => "a\r\nb: c"]) {
      const { events, thrown } = await callProvider("http://127.0.0.1:1/v1", {}, { apiKey });
      expect(said(thrown)).toEqual({
        reason: "credential_unavailable",
        delivery: "not-sent",
        status: null,
      });
      expect(events).toEqual([]);
      expect(String(thrown)).not.toContain("sk-");
    }
  });

  it("is no longer awaited after the call's signal aborts", async () => {
    const caller = new AbortController();
    const reason = new Error("the caller left");
    const apiKey = (): Promise<string> => {
      setImmediate(() => caller.abort(reason));
      return new Promise(() => {});
    };
    const { thrown } = await callProvider(
      "http://127.0.0.1:1/v1",
      { signal: caller.signal },
      { apiKey },
    );
    expect(thrown).toBe(reason);
  });
});

describe("an upstream's error", () => {
  it("S15: shows only a plain code and field", async () => {
    for (const [code, param, shown] of [
      [
        "context_length_exceeded",
        "messages[0].content",
        ["context_length_exceeded", "messages[0].content"],
      ],
      ["Your key sk-platform-secret", "account 42", [null, null]],
      ["sk-platform-secret", "x-sk-platform-secret-y", [null, null]],
      ["sk-platform-sec", "key.tform-secret", [null, null]],
      [429, { a: 1 }, [null, null]],
      ["x".repeat(65), "", [null, null]],
    ] as const) {
      const body = JSON.stringify({
        error: { message: "sk-platform-secret of acme", code, param },
      });
      const { thrown } = await callUpstream(({ send }) =>
        send(
          `HTTP/1.1 400 No\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        ),
      );
      if (!(thrown instanceof ProviderError)) throw thrown;
      expect([thrown.code, thrown.param]).toEqual(shown);
      expect(thrown.message).toBe("The provider answered with status 400.");
      expect(inspect(thrown) + JSON.stringify(thrown)).not.toMatch(/secret|acme/);
      expect(thrown.text).toBe("[removed] of acme");
    }
  });

  it("keeps the text of an error body that is not JSON, without the credential and the headers", async () => {
    const body = "<h1>Bad gateway</h1>\u0007 for sk-platform-secret, tenant a-token-of-the-tenant";
    const { thrown } = await callUpstream(
      ({ send }) =>
        send(`HTTP/1.1 502 No\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`),
      {},
      { headers: { "x-tenant-token": "a-token-of-the-tenant" } },
    );
    if (!(thrown instanceof ProviderError)) throw thrown;
    expect(thrown.text).toBe("<h1>Bad gateway</h1> for [removed], tenant [removed]");
  });

  it("S15: shows nothing else when it arrives as an event", async () => {
    const event = `data: ${JSON.stringify({ error: { message: "sk-platform-secret", code: "sk-platform-secret" } })}\n\n`;
    const { events, thrown } = await callUpstream(({ send }) => send(streamHead + chunked(event)));
    expect(kinds(events)).toEqual(["request-sent"]);
    expect(thrown).toMatchObject({ code: null });
    expect(String(thrown) + JSON.stringify(thrown)).not.toContain("secret");
  });

  it("a misconfigured provider sends nothing", async () => {
    const { thrown } = await callProvider("http://a b/", {});
    expect(said(thrown)).toEqual({ reason: "misconfigured", delivery: "not-sent", status: null });
  });
});
