import { describe, expect, it } from "vitest";
import { eventStreamHeaders } from "./event-stream.ts";
import { type StreamBody, type TextSink, toResponse } from "./gateway-response.ts";

describe("toResponse", () => {
  it("returns a text unchanged", async () => {
    const headers = { "content-type": "application/json", "x-request-id": "1" };
    const response = toResponse({ status: 404, headers, body: '{"é":1}' });
    expect(response.status).toBe(404);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toBe("1");
    expect(await response.text()).toBe('{"é":1}');
  });

  it("streams one chunk per text", async () => {
    const body = bodyOf(({ write, end }) => {
      void write("a\n");
      void write("é");
      end();
    });
    const response = toResponse({ status: 200, headers: eventStreamHeaders, body });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const chunks: string[] = [];
    for await (const chunk of response.body ?? []) chunks.push(new TextDecoder().decode(chunk));
    expect(chunks).toEqual(["a\n", "é"]);
  });

  it("starts when the client reads, and has room for one text per read", async () => {
    let written = 0;
    const body = bodyOf(async ({ write }) => {
      for (;;) await write(String(++written));
    });
    const reader = toResponse({ status: 200, headers: {}, body }).body?.getReader();
    await settled();
    expect(written).toBe(0);
    await reader?.read();
    await settled();
    expect(written).toBe(1);
    await reader?.read();
    await settled();
    expect(written).toBe(2);
    await reader?.cancel();
  });

  it("has room for the texts of two simultaneous reads", async () => {
    const body = bodyOf(async ({ write, end }) => {
      await settled();
      await write("a");
      await write("b");
      end();
    });
    const reader = toResponse({ status: 200, headers: {}, body }).body?.getReader();
    const reads = await Promise.all([reader?.read(), reader?.read()]);
    expect(reads.map((read) => Buffer.from(read?.value ?? []).toString())).toEqual(["a", "b"]);
  });

  it.each([0, 1])("reports after %i reads that the client left", async (reads) => {
    const left: string[] = [];
    const body = bodyOf(
      ({ write }) => void write("x"),
      () => left.push("left"),
    );
    const reader = toResponse({ status: 200, headers: {}, body }).body?.getReader();
    for (let read = 0; read < reads; read++) await reader?.read();
    await reader?.cancel();
    expect(left).toEqual(["left"]);
  });

  it("fails the stream when the body breaks off", async () => {
    const body = bodyOf(({ write, fail }) => {
      void write("x");
      fail(new Error("broken"));
    });
    await expect(toResponse({ status: 200, headers: {}, body }).text()).rejects.toThrow("broken");
  });
});

function bodyOf(start: (sink: TextSink) => unknown, leave: () => unknown = () => {}): StreamBody {
  return { byteLength: null, start: (sink) => void start(sink), leave: () => void leave() };
}

/** Waits until every pending promise callback has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
