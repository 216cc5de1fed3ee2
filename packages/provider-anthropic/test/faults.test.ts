import { inspect } from "node:util";
import { ProviderError } from "@tollgate/core/provider";
import { messagesUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { anthropic } from "../src/index.ts";
import { answer, callOf, callUpstream, event, fixture, said } from "./drive.ts";

const error = (type: string, message = "secret words") =>
  JSON.stringify({ type: "error", error: { type, message } });
const sse = "text/event-stream";
const text = [
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Half" } }),
].join("");

describe("an error of the upstream", () => {
  it.each([
    [529, "overloaded_error", "overloaded"],
    [429, "rate_limit_error", "rate_limit_exceeded"],
    [400, "invalid_request_error", "invalid_request_error"],
    [401, "authentication_error", "authentication_error"],
    [413, "request_too_large", "request_too_large"],
    [500, "api_error", "api_error"],
  ])("has the status %i and the code of %s", async (status, type, code) => {
    const { thrown } = await callUpstream(({ send }) => send(answer(status, error(type))));
    expect(said(thrown)).toMatchObject({ delivery: "answered", status, code, retryAfterMs: null });
  });

  it("says that a prompt is too long", async () => {
    const body = error(
      "invalid_request_error",
      "prompt is too long: 200001 tokens > 200000 maximum",
    );
    const { thrown } = await callUpstream(({ send }) => send(answer(400, body)));
    expect(said(thrown)).toMatchObject({ status: 400, code: "context_length_exceeded" });
  });

  it("says how long to wait, by its own header or by its rate limits", async () => {
    const limits = [
      "anthropic-ratelimit-requests-remaining: 0",
      "anthropic-ratelimit-requests-reset: 2020-01-01T00:00:00Z",
    ];
    for (const [headers, retryAfterMs] of [
      [["retry-after: 7", ...limits], 7_000],
      [limits, 0],
    ] as const) {
      const { thrown } = await callUpstream(({ send }) =>
        send(answer(429, error("rate_limit_error"), headers)),
      );
      expect(said(thrown)).toMatchObject({ retryAfterMs });
    }
  });

  it.each([
    ["before any text is an answer with its status", "", { delivery: "answered", status: 529 }],
    ["after text leaves the outcome unknown", text, { delivery: "unknown", status: 200 }],
  ])("in a stream %s", async (_, before, expected) => {
    for (const named of [true, false]) {
      const data = `data: ${error("overloaded_error")}\n\n`;
      const body = `${before}${named ? "event: error\n" : ""}${data}`;
      const { thrown } = await callUpstream(({ send }) => send(answer(200, body, [], sse)));
      expect(said(thrown)).toMatchObject({ ...expected, code: "overloaded" });
    }
  });

  it("shows neither the credential nor the upstream's words", async () => {
    const { thrown } = await callUpstream(({ send }) =>
      send(answer(401, error("authentication_error", "bad key sk-secret-key"))),
    );
    expect(inspect(thrown, { depth: 9, showHidden: true })).not.toMatch(/sk-secret-key|bad key/);
    expect(thrown instanceof ProviderError && thrown.text).toBe("bad key [removed]");
  });
});

describe("a stream", () => {
  it("that is cut at any byte before its stop reason fails", async () => {
    const bytes = Buffer.from(fixture("thinking.sse"));
    const stop = bytes.indexOf("event: message_delta");
    for (let at = 0; at < stop; at += 41) {
      const body = bytes.subarray(0, at).toString("latin1");
      const head = `HTTP/1.1 200 OK\r\ncontent-type: ${sse}\r\nconnection: close\r\n\r\n`;
      const { thrown } = await callUpstream(async ({ send, end }) => {
        await send(Buffer.from(head + body, "latin1"));
        end();
      });
      expect(said(thrown)).toMatchObject({ reason: "answer_cut", delivery: "unknown" });
    }
  });

  it("is complete at message_stop, even if the connection stays open", async () => {
    const head = `HTTP/1.1 200 OK\r\ncontent-type: ${sse}\r\n\r\n`;
    const { events, thrown } = await callUpstream(({ send }) => send(head + fixture("text.sse")));
    expect([thrown, events.at(-1)]).toEqual([null, { type: "finish", reason: "stop" }]);
  });

  it.each([
    ["an event that never ends", `data: "${"x".repeat(70_000)}`, "event_too_large"],
    ["an event of very many values", `data: [${"[],".repeat(30_000)}[]]\n\n`, "invalid_event"],
    [
      "arguments that nest too deeply",
      event({
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "a", name: "f", input: { a: deep(70) } },
      }) + event({ type: "content_block_stop", index: 0 }),
      "invalid_event",
    ],
  ])("fails with %s", async (_, body, reason) => {
    const limits = {
      eventBytes: reason === "event_too_large" ? 65_536 : 1_048_576,
      totalBytes: 1_000_000,
      bodyBytes: 1_000_000,
    };
    const { thrown } = await callUpstream(({ send }) => send(answer(200, body, [], sse)), {
      limits,
    });
    expect(said(thrown)).toMatchObject({ reason, delivery: "unknown" });
  });

  it("that stalls ends when its call is cancelled", async () => {
    const cancelled = new AbortController();
    const head = `HTTP/1.1 200 OK\r\ncontent-type: ${sse}\r\n\r\n`;
    const { upstream, thrown } = await callUpstream(
      async ({ send }) => {
        await send(head + text);
        cancelled.abort(new Error("enough"));
      },
      { signal: cancelled.signal },
    );
    expect(thrown).toMatchObject({ message: "enough" });
    await upstream.requests[0]?.closed;
  });
});

function deep(levels: number): object {
  return levels === 0 ? {} : { a: deep(levels - 1) };
}

describe("a request", () => {
  it("has the API's headers, the configured betas and those of the request", async () => {
    const { upstream } = await callUpstream(
      ({ send }) => send(answer(200, fixture("text.json"))),
      {
        stream: false,
        request: {
          messages: [{ role: "user", content: "Hi" }],
          anthropic: { betas: ["b-2", "b-1"] },
        },
      },
      { betas: ["b-1"], version: "2024-01-01", headers: { "X-Own": "1" } },
    );
    const [first = "", ...lines] = upstream.requests[0]?.head.split("\r\n") ?? [];
    expect(first).toBe("POST /v1/messages HTTP/1.1");
    expect(
      lines.filter((line) => !/^(?:host|connection|content-length|user-agent)/.test(line)).sort(),
    ).toEqual([
      "accept-encoding: identity",
      "accept: application/json",
      "anthropic-beta: b-1,b-2",
      "anthropic-version: 2024-01-01",
      "content-type: application/json",
      "x-api-key: sk-secret-key",
      "x-own: 1",
    ]);
  });
});

describe("the options", () => {
  it.each([
    [{ apiKey: undefined }, "apiKey"],
    [{ baseURL: "ftp://a" }, "baseURL"],
    [{ version: "latest" }, "version"],
    [{ betas: ["A b"] }, "betas"],
    [{ headers: { "X-Api-Key": "sk-2" } }, "headers"],
    [{ connection: "customer" }, "apiKey"],
  ] as const)("refuse %j", (over, path) => {
    const { problems } = anthropic({ apiKey: "sk-1", ...over });
    expect(problems).toEqual([expect.stringContaining(path)]);
    expect(problems.join()).not.toMatch(/sk-[12]/);
  });

  it("name the vendor, and pass breakpoints on", async () => {
    const provider = anthropic({ apiKey: "sk-1" });
    expect(provider).toMatchObject({ vendor: "anthropic", problems: [], open: true });
    expect(provider.stateNeeds?.("other/m")).toMatchObject({ cacheBreakpoints: true });
    await provider.close();
  });
});

describe("counting tokens", () => {
  const { request, model, upstreamName, credential, signal, limits } = callOf();
  const call = { request, model, upstreamName, credential, signal, limits };

  it("asks the upstream", async () => {
    const upstream = await messagesUpstream(() => ({ content: [] }));
    onTestFinished(() => upstream.close());
    const provider = anthropic({ apiKey: "sk-1", baseURL: upstream.url });
    onTestFinished(() => provider.close());
    const tokens = await provider.countTokens?.(call);
    expect(upstream.requests).toMatchObject([{ path: "/v1/messages/count_tokens" }]);
    expect(tokens).toBe(Math.ceil(JSON.stringify(upstream.requests[0]?.body).length / 4));
  });

  it.each([
    [
      answer(529, error("overloaded_error")),
      { status: 529, code: "overloaded", delivery: "answered" },
    ],
    [answer(200, "{}"), { reason: "invalid_answer" }],
    [answer(200, "no"), { reason: "invalid_json" }],
  ])("fails as a call does", async (sent, expected) => {
    const { upstream } = await callUpstream(({ send }) => send(sent));
    const provider = anthropic({ apiKey: "sk-1", baseURL: `${upstream.url}/v1` });
    onTestFinished(() => provider.close());
    const thrown = await provider.countTokens?.(call).catch((failure: unknown) => failure);
    expect(said(thrown)).toMatchObject(expected);
  });
});
