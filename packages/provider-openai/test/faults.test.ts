import { once } from "node:events";
import { createServer } from "node:net";
import { nextTick } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openaiCompatible } from "../src/index.ts";
import {
  callOf,
  callProvider,
  callUpstream,
  chunked,
  data,
  done,
  finishChunk,
  head,
  kinds,
  said,
  streamHead,
  textChunk,
  usageChunk,
} from "./drive.ts";
import { manualClock } from "./manual-clock.ts";

const answered = ["request-sent", "answer-started", "text-delta"];

describe("faults of an upstream", () => {
  it("F1: refuses the connection", async () => {
    const { thrown } = await callProvider("http://127.0.0.1:1/v1");
    expect(said(thrown)).toEqual({
      reason: "connection_refused",
      delivery: "not-sent",
      status: null,
    });
  });

  it("F2: resets or closes before its headers", async () => {
    const reset = await callUpstream((exchange) => exchange.reset());
    expect(said(reset.thrown)).toEqual({
      reason: "connection_reset",
      delivery: "unknown",
      status: null,
    });
    const closed = await callUpstream((exchange) => exchange.end());
    expect(said(closed.thrown)).toEqual({
      reason: "connection_closed",
      delivery: "unknown",
      status: null,
    });
    expect(reset.upstream.requests).toHaveLength(1);
    expect(closed.upstream.requests).toHaveLength(1);
  });

  it("F3: has no name, or no TLS", async () => {
    const nameless = await callProvider(`http://${"x".repeat(64)}.invalid/v1`);
    expect(said(nameless.thrown)).toMatchObject({ reason: "dns_failed", delivery: "not-sent" });
    const speaker = createServer((socket) => socket.on("error", () => {}).end("220 hello\r\n"));
    await once(speaker.listen(0, "127.0.0.1"), "listening");
    const address = speaker.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const plain = await callProvider(`https://127.0.0.1:${port}/v1`);
    expect(said(plain.thrown)).toMatchObject({ reason: "tls_failed", delivery: "not-sent" });
    speaker.close();
  });

  it("F4: stalls, until the call is aborted, before its headers and in its body", async () => {
    for (const begun of ["", streamHead + chunked(textChunk)]) {
      const caller = new AbortController();
      const reason = new Error("too slow");
      const { thrown, upstream } = await callUpstream(
        async ({ send }) => {
          await send(begun);
          caller.abort(reason);
        },
        { signal: caller.signal },
      );
      expect(thrown).toBe(reason);
      await upstream.requests[0]?.closed;
    }
  });

  it("F4: is aborted while it connects: nothing is sent", async () => {
    const upstream = await scriptedUpstream(({ send }) => send(streamHead));
    onTestFinished(() => upstream.close());
    const provider = openaiCompatible({ baseURL: upstream.url, apiKey: null });
    const caller = new AbortController();
    const reason = new Error("the caller left");
    const reading = provider.complete(callOf({ signal: caller.signal }))[Symbol.asyncIterator]();
    await reading.next();
    const next = reading.next();
    // The request is written at the end of the turn.
    await new Promise<void>((resolve) => nextTick(resolve));
    caller.abort(reason);
    await expect(next).rejects.toBe(reason);
    while (upstream.connections.made === 0 || upstream.connections.open > 0) await nextTurn();
    expect(upstream.requests).toHaveLength(0);
    await provider.close();
  });

  it("F4: is aborted before its request is written: makes no connection", async () => {
    const upstream = await scriptedUpstream(({ send }) => send(streamHead));
    onTestFinished(() => upstream.close());
    const provider = openaiCompatible({ baseURL: upstream.url, apiKey: null });
    const caller = new AbortController();
    const reason = new Error("the caller left");
    const reading = provider.complete(callOf({ signal: caller.signal }))[Symbol.asyncIterator]();
    await reading.next();
    const next = reading.next();
    await Promise.resolve();
    caller.abort(reason);
    await expect(next).rejects.toBe(reason);
    for (let turn = 0; turn < 100; turn++) await nextTurn();
    expect(upstream.connections.made).toBe(0);
    await provider.close();
  });

  it("F4: makes no connection in time: nothing is sent", async () => {
    const silent = createServer(() => {});
    await once(silent.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void silent.close());
    const address = silent.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const clock = manualClock();
    const call = callProvider(`https://127.0.0.1:${port}/v1`, { connectWithin: 5_000 }, { clock });
    await clock.waiting();
    clock.advance(4_999);
    clock.advance(1);
    const { thrown } = await call;
    expect(said(thrown)).toMatchObject({ reason: "connect_timeout", delivery: "not-sent" });
    await clock.idle();
  });

  it("F5: closes or resets in the middle of a chunked body (S20)", async () => {
    const { events, thrown } = await callUpstream(async ({ send, end }) => {
      await send(streamHead + chunked(textChunk));
      end();
    });
    expect(kinds(events)).toEqual(answered);
    expect(said(thrown)).toEqual({ reason: "connection_closed", delivery: "unknown", status: 200 });
  });

  it("F5: closes after the finish reason, but in the middle of its body", async () => {
    const { events, thrown } = await callUpstream(async ({ send, end }) => {
      await send(streamHead + chunked(textChunk + finishChunk));
      end();
    });
    expect(kinds(events)).not.toContain("finish");
    expect(said(thrown)).toMatchObject({ delivery: "unknown" });
  });

  it("F6, F7: ends cleanly without a finish reason (S20)", async () => {
    for (const [bytes, closes] of [
      [head("content-type: text/event-stream", "connection: close") + textChunk, true],
      [streamHead + chunked(textChunk) + chunked(""), false],
      [streamHead + chunked(textChunk + done) + chunked(""), false],
    ] as const) {
      const { events, thrown } = await callUpstream(async ({ send, end }) => {
        await send(bytes);
        if (closes) end();
      });
      expect(kinds(events)).toEqual(answered);
      expect(said(thrown)).toEqual({ reason: "answer_cut", delivery: "unknown", status: 200 });
    }
  });

  it("F8: keeps its socket open after [DONE]: the answer ends at once, the socket soon", async () => {
    const clock = manualClock();
    const { events, thrown, upstream } = await callUpstream(
      ({ send }) => send(streamHead + chunked(textChunk + finishChunk + usageChunk + done)),
      {},
      { clock },
    );
    expect(thrown).toBeNull();
    expect(kinds(events)).toEqual([...answered, "usage", "finish"]);
    clock.advance(1_000);
    await upstream.requests[0]?.closed;
  });

  it("F8: is silent after the finish reason: the call waits two seconds for usage", async () => {
    const clock = manualClock();
    const outcome = callUpstream(
      ({ send }) => send(streamHead + chunked(textChunk + finishChunk)),
      {},
      { clock },
    );
    await clock.waiting();
    clock.advance(1_999);
    await nextTurn();
    clock.advance(1);
    const { events, thrown } = await outcome;
    expect(thrown).toBeNull();
    expect(kinds(events)).toEqual([...answered, "finish"]);
  });

  it("F12: sends an endless event, or more than the limit (S25)", async () => {
    const endless = Buffer.alloc(65_536, "x");
    const { thrown, upstream } = await callUpstream(async ({ send, closed }) => {
      let open = true;
      void closed.then(() => {
        open = false;
      });
      await send(`${head("content-type: text/event-stream", "connection: close")}data: `);
      while (open) await send(endless);
    });
    expect(said(thrown)).toEqual({ reason: "event_too_large", delivery: "unknown", status: 200 });
    await upstream.requests[0]?.closed;
    const events = await callUpstream(
      ({ send }) => send(streamHead + chunked(textChunk.repeat(100))),
      { limits: { eventBytes: 1_000, totalBytes: 1_000, bodyBytes: 4_194_304 } },
    );
    expect(said(events.thrown)).toEqual({
      reason: "answer_too_large",
      delivery: "unknown",
      status: 200,
    });
  });

  it("F12: is paused while nobody reads its answer", async () => {
    let sent = false;
    const upstream = await scriptedUpstream(async ({ send }) => {
      await send(head("content-type: text/event-stream", "connection: close") + textChunk);
      await send(`: ${"x".repeat(1_000)}\n\n`.repeat(50_000));
      sent = true;
    });
    onTestFinished(() => upstream.close());
    const provider = openaiCompatible({ baseURL: upstream.url, apiKey: null });
    const reading = provider.complete(callOf())[Symbol.asyncIterator]();
    await reading.next();
    await reading.next();
    for (let turn = 0; turn < 500; turn++) await nextTurn();
    expect(sent).toBe(false);
    await reading.return?.();
    await upstream.requests[0]?.closed;
    await provider.close();
  });

  it.each([
    ["a plain answer", 200, null],
    ["an error", 500, "status_500"],
  ])(
    "F12: sends %s in single bytes, which are joined as they arrive",
    async (_, status, reason) => {
      const message = { content: "x".repeat(4_000) };
      const body = JSON.stringify({ choices: [{ message, finish_reason: "stop" }], usage: null });
      const concat = vi.spyOn(Buffer, "concat");
      onTestFinished(() => concat.mockRestore());
      const { thrown } = await callUpstream(
        ({ send }) =>
          send(
            `HTTP/1.1 ${status} Answer\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n` +
              [...body, ""].map(chunked).join(""),
          ),
        { stream: false },
      );
      expect(thrown).toEqual(reason === null ? null : expect.objectContaining({ reason, status }));
      expect(Math.max(...concat.mock.calls.map(([pieces]) => pieces.length))).toBeLessThan(300);
    },
  );

  it("F13: never sends usage", async () => {
    const { events } = await callUpstream(({ send }) =>
      send(streamHead + chunked(textChunk + finishChunk + done) + chunked("")),
    );
    expect(kinds(events)).toEqual([...answered, "finish"]);
  });

  it("F14: sends usage with every chunk: the last value is the last event (S19)", async () => {
    const counted = [1, 2, 3].map((completion_tokens) =>
      data({ choices: [], usage: { completion_tokens } }),
    );
    const { events } = await callUpstream(({ send }) =>
      send(streamHead + chunked(counted.join("") + finishChunk + done) + chunked("")),
    );
    const usage = events.filter((event) => event.type === "usage");
    expect(usage.at(-1)?.usage).toEqual({ completionTokens: 3 });
  });

  it("F15: answers an error status and a retry delay", async () => {
    for (const [status, wait, expected] of [
      [429, "retry-after: 7", 7_000],
      [500, "x-nothing: 1", null],
      [502, "retry-after: garbage", null],
      [503, "retry-after-ms: 12", 12],
      [529, "retry-after: 315360000", 3_600_000],
    ] as const) {
      const { thrown } = await callUpstream(({ send }) =>
        send(`HTTP/1.1 ${status} No\r\n${wait}\r\ncontent-length: 2\r\n\r\n{}`),
      );
      expect(said(thrown)).toEqual({ reason: `status_${status}`, delivery: "answered", status });
      expect(thrown).toMatchObject({ retryAfterMs: expected, timedOut: false });
    }
  });

  it("F15: never ends the body of its error: the status is kept", async () => {
    const clock = manualClock();
    const outcome = callUpstream(
      ({ send }) => send("HTTP/1.1 429 No\r\ncontent-length: 99\r\n\r\n{"),
      {},
      { clock },
    );
    await clock.waiting();
    clock.advance(2_000);
    expect(said((await outcome).thrown)).toMatchObject({ reason: "status_429" });
  });

  it("F16: answers 200 with an error, a page, nothing, or another type", async () => {
    for (const [type, body, reason] of [
      ["application/json", '{"error":{"message":"no","code":"quota"}}', "upstream_error"],
      ["application/json", '{"error":{"message":"no","code":429}}', "upstream_error"],
      ["text/html", "<html>", "unexpected_content_type"],
      ["application/json", "", "empty_answer"],
      ["application/json", "{", "invalid_json"],
      ["application/json", '{"choices":[]}', "invalid_answer"],
      ["application/json", '{"choices":[{"finish_reason":"stop"}]}', "invalid_answer"],
      ["application/json", '{"choices":[{"message":{"content":"Hi"}}]}', "answer_cut"],
      ["text/plain", "Hi", "unexpected_content_type"],
      ["text/event-stream", "", "answer_cut"],
    ] as const)
      for (const stream of [true, false]) {
        const bytes = head(`content-type: ${type}`, `content-length: ${body.length}`) + body;
        const { events, thrown } = await callUpstream(({ send }) => send(bytes), { stream });
        expect(said(thrown)).toMatchObject({ reason });
        expect(kinds(events)).not.toContain("finish");
      }
  });

  it.each([
    [429, { code: 429 }],
    [429, { code: "rate_limit_exceeded" }],
    [503, { type: "overloaded_error", code: null }],
    [400, { message: "This is more than the maximum context length." }],
    // The model may have written what the filter withholds.
    [200, { code: "content_filter" }],
    [200, { code: "server_error" }],
  ])(
    "F16: sends an error instead of an answer: it counts as status %i for %o",
    async (status, error) => {
      const bytes = streamHead + chunked(data({ error: { message: "no", ...error } }));
      const { thrown } = await callUpstream(({ send }) => send(bytes));
      expect(said(thrown)).toEqual({ reason: "upstream_error", delivery: "answered", status });
    },
  );

  it("F17: sends an error in the middle of its stream", async () => {
    for (const event of [
      data({ error: { message: "no", code: "server_error" } }),
      data({ error: "no" }),
      `event: error\n${data({ message: "no" })}`,
    ]) {
      const { events, thrown } = await callUpstream(({ send }) =>
        send(streamHead + chunked(textChunk + event) + chunked("")),
      );
      expect(kinds(events)).toEqual(answered);
      expect(said(thrown)).toEqual({ reason: "upstream_error", delivery: "unknown", status: 200 });
    }
  });

  it("F18: sends a few or very many interim answers before its answer", async () => {
    const interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    const good = streamHead + chunked(textChunk + finishChunk + done) + chunked("");
    const few = await callUpstream(({ send }) => send(interim.repeat(3) + good));
    expect(few.thrown).toBeNull();
    const storm = await callUpstream(({ send }) => send(interim.repeat(1_000) + good));
    expect(said(storm.thrown)).toMatchObject({ reason: "too_many_interim", delivery: "unknown" });
  });

  it("F18: switches protocols, answers nothing, or answers before it reads the request", async () => {
    const switched = await callUpstream(({ send }) =>
      send("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
    );
    expect(said(switched.thrown)).toMatchObject({ delivery: "unknown" });
    const nothing = await callUpstream(({ send }) => send("HTTP/1.1 204 Nothing\r\n\r\n"));
    expect(said(nothing.thrown)).toEqual({
      reason: "status_204",
      delivery: "unknown",
      status: 204,
    });
    const early = await callUpstream(async ({ send, end }) => {
      await send("HTTP/1.1 413 Too large\r\nconnection: close\r\n\r\n");
      end();
    });
    expect(said(early.thrown)).toMatchObject({ reason: "status_413", delivery: "answered" });
  });

  it("F19: sends headers that are too large or contradict each other", async () => {
    const large = await callUpstream(({ send }) => send(head(`x-large: ${"x".repeat(20_000)}`)));
    expect(said(large.thrown)).toMatchObject({ reason: "headers_too_large", delivery: "unknown" });
    const both = await callUpstream(({ send }) =>
      send(
        head("content-type: text/event-stream", "content-length: 5", "transfer-encoding: chunked"),
      ),
    );
    expect(said(both.thrown)).toMatchObject({ reason: "invalid_http", delivery: "unknown" });
  });

  it("F19, S28: compresses its answer, which is refused", async () => {
    for (const encoding of ["gzip", "br", "gzip, gzip, gzip, gzip, gzip, gzip"]) {
      const bomb = gzipSync(Buffer.alloc(1_000_000));
      const { thrown, upstream } = await callUpstream(async ({ send }) => {
        await send(
          head(
            "content-type: application/json",
            `content-encoding: ${encoding}`,
            `content-length: ${bomb.length}`,
          ),
        );
        await send(bomb);
      });
      expect(said(thrown)).toEqual({
        reason: "unexpected_encoding",
        delivery: "unknown",
        status: 200,
      });
      expect(upstream.requests[0]?.head).toContain("accept-encoding: identity");
    }
  });
});
