import { describe, expect, it } from "vitest";
import { eventStreamHeaders } from "./event-stream.ts";
import { toResponse } from "./to-response.ts";

describe("toResponse", () => {
  it("answers with a text as it is", async () => {
    const headers = { "content-type": "application/json", "x-request-id": "1" };
    const response = toResponse({ status: 404, headers, body: '{"é":1}' });
    expect(response.status).toBe(404);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toBe("1");
    expect(await response.text()).toBe('{"é":1}');
  });

  it("streams one chunk per item and passes over empty ones", async () => {
    const items = ["", "a\n", "", "é", ""];
    const body = (async function* () {
      yield* items;
    })();
    const response = toResponse({ status: 200, headers: eventStreamHeaders, body });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const chunks: string[] = [];
    for await (const chunk of response.body ?? []) chunks.push(new TextDecoder().decode(chunk));
    expect(chunks).toEqual(["a\n", "é"]);
  });

  it("takes an item only when the client reads", async () => {
    let taken = 0;
    const body = (async function* () {
      for (;;) yield String(++taken);
    })();
    const reader = toResponse({ status: 200, headers: {}, body }).body?.getReader();
    await Promise.resolve();
    expect(taken).toBe(0);
    await reader?.read();
    await reader?.read();
    expect(taken).toBe(2);
    await reader?.cancel();
  });

  it("ends the iteration when the client leaves", async () => {
    let ended = false;
    const body = (async function* () {
      try {
        for (;;) yield "x";
      } finally {
        ended = true;
      }
    })();
    const reader = toResponse({ status: 200, headers: {}, body }).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(ended).toBe(true);
  });

  it("fails the stream when the iteration fails", async () => {
    const body = (async function* () {
      yield "x";
      throw new Error("broken");
    })();
    await expect(toResponse({ status: 200, headers: {}, body }).text()).rejects.toThrow("broken");
  });
});
