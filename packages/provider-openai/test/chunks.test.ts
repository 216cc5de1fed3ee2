import { describe, expect, it } from "vitest";
import { joined, readBytes } from "./read-bytes.ts";

const stop = { choices: [{ delta: {}, finish_reason: "stop" }] };

function read(...chunks: readonly unknown[]): readonly object[] {
  const lines = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  const [, ...events] = joined(readBytes([Buffer.from(lines.join(""))]));
  return events;
}

function calls(...fragments: readonly (readonly object[])[]): readonly object[] {
  const chunks = fragments.map((tool_calls) => ({ choices: [{ delta: { tool_calls } }] }));
  return read(...chunks, stop).slice(0, -1);
}

const call = (index: number, id: string, name: string): object => ({
  type: "tool-call-started",
  index,
  id,
  name,
});
const wrote = (index: number, written: string): object => ({
  type: "tool-call-delta",
  index,
  arguments: written,
});
const made = (number: number): object =>
  expect.objectContaining({ index: number, id: expect.stringMatching(/^call_[0-9a-f]{24}$/) });

describe("content of an answer besides its text", () => {
  it("is passed on as it is, up to 256 sources and 256 images", () => {
    const cited = { type: "url_citation", url_citation: { url: "https://x.test" } };
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const many = { annotations: Array.from({ length: 300 }, () => cited), images: "none" };
    const chunks = [{ annotations: [cited, 5] }, { images: [image] }, many, many];
    const shown = read(...chunks.map((delta) => ({ choices: [{ delta }] })), stop).slice(0, -1);
    expect(shown).toEqual([
      { type: "shown", name: "annotations", entries: [cited] },
      { type: "shown", name: "images", entries: [image] },
      { type: "shown", name: "annotations", entries: Array.from({ length: 255 }, () => cited) },
    ]);
  });

  it("includes the system fingerprint if it is a short string", () => {
    const started = (system_fingerprint: unknown) =>
      readBytes([Buffer.from(`data: ${JSON.stringify({ system_fingerprint, ...stop })}\n\n`)])[0];
    expect(started("fp_1")).toEqual({ type: "answer-started", systemFingerprint: "fp_1" });
    for (const value of [null, "", 5, "x".repeat(256)])
      expect(started(value)).toEqual({ type: "answer-started" });
  });
});

describe("tool calls of a stream", () => {
  it("groups fragments by index, even out of order (F11)", () => {
    expect(
      calls(
        [{ index: 1, id: "b", function: { name: "g", arguments: "{" } }],
        [{ index: 0, id: "a", function: { name: "f", arguments: "{" } }],
        [{ index: 1, function: { arguments: "}" } }],
        [{ index: 0, function: { arguments: "}" } }],
      ),
    ).toEqual([
      call(0, "b", "g"),
      wrote(0, "{"),
      call(1, "a", "f"),
      wrote(1, "{"),
      wrote(0, "}"),
      wrote(1, "}"),
    ]);
  });

  it("tells calls apart by id or position if they have no index", () => {
    expect(
      calls([
        { function: { name: "f", arguments: "{}" } },
        { function: { name: "g", arguments: "{}" } },
      ]),
    ).toEqual([made(0), wrote(0, "{}"), made(1), wrote(1, "{}")]);
    expect(
      calls(
        [{ id: "a", function: { name: "f", arguments: "" } }],
        [{ id: "a", function: { arguments: "{}" } }],
        [{ id: "b", function: { name: "f", arguments: "{}" } }],
      ),
    ).toEqual([call(0, "a", "f"), wrote(0, "{}"), call(1, "b", "f"), wrote(1, "{}")]);
  });

  it("tells two calls apart that share an index", () => {
    expect(
      calls(
        [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }],
        [{ index: 0, id: "b", function: { name: "f", arguments: "{}" } }],
      ),
    ).toEqual([call(0, "a", "f"), wrote(0, "{}"), call(1, "b", "f"), wrote(1, "{}")]);
  });

  it("counts a repeated name, or repeated arguments, once", () => {
    expect(
      calls(
        [{ index: 0, id: "a", function: { name: "f", arguments: '{"x":' } }],
        [{ index: 0, id: "a", function: { name: "f", arguments: "1}" } }],
        [{ index: 0, id: "a", function: { name: "f", arguments: '{"x":1}' } }],
      ),
    ).toEqual([call(0, "a", "f"), wrote(0, '{"x":1}')]);
  });

  it("holds arguments back until the name is known", () => {
    expect(
      calls(
        [{ index: 0, id: "a", function: { arguments: '{"x"' } }],
        [{ index: 0, function: { name: "f", arguments: ":1}" } }],
      ),
    ).toEqual([call(0, "a", "f"), wrote(0, '{"x":1}')]);
  });

  it("serializes arguments that arrive as an object", () => {
    expect(calls([{ index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } }])).toEqual([
      call(0, "a", "f"),
      wrote(0, '{"x":1}'),
    ]);
  });

  it("creates the same ids for the same answer", () => {
    const once = calls([{ index: 0, function: { name: "f", arguments: "{}" } }]);
    expect(once).toEqual(calls([{ index: 0, function: { name: "f", arguments: "{}" } }]));
    expect(once[0]).toEqual(made(0));
  });

  it("rejects a call without a name", () => {
    expect(() => calls([{ index: 0, id: "a", function: { arguments: "{}" } }])).toThrow(
      /without a name/,
    );
  });

  it("reads the function call of the older format", () => {
    expect(
      read(
        { choices: [{ delta: { function_call: { name: "f", arguments: "{" } } }] },
        { choices: [{ delta: { function_call: { arguments: "}" } } }] },
        { choices: [{ delta: {}, finish_reason: "function_call" }] },
      ),
    ).toEqual([made(0), wrote(0, "{}"), { type: "finish", reason: "tool_calls" }]);
  });
});

describe("chunks of a stream", () => {
  it("relays log probabilities as they are", () => {
    const logprobs = {
      content: [{ token: "a", logprob: -0.1, bytes: [97], top_logprobs: [] }],
      refusal: null,
    };
    expect(read({ choices: [{ delta: { content: "a" }, logprobs }] }, stop)).toEqual([
      { type: "text-delta", text: "a" },
      { type: "logprobs", logprobs },
      { type: "finish", reason: "stop" },
    ]);
  });

  it("reads only one of two equal reasoning fields", () => {
    const delta = { reasoning_content: "hm", reasoning: "hm", reasoning_details: [{ text: "hm" }] };
    expect(read({ choices: [{ delta }] }, stop)[0]).toEqual({
      type: "reasoning-delta",
      text: "hm",
      field: "reasoning_content",
    });
  });

  it("uses the first of two finish reasons, and reads usage after it (F11)", () => {
    expect(
      read(
        stop,
        { choices: [{ delta: {}, finish_reason: "length" }] },
        { choices: [], usage: { prompt_tokens: 1 } },
      ),
    ).toEqual([
      { type: "usage", usage: { promptTokens: 1 } },
      { type: "finish", reason: "stop" },
    ]);
  });

  it("rejects an unknown finish reason", () => {
    expect(() => read({ choices: [{ delta: {}, finish_reason: "error" }] })).toThrow(
      /unknown finish reason/,
    );
  });

  it("ignores other choices and empty chunks", () => {
    expect(
      read(
        { choices: null },
        { type: "ping" },
        { choices: [{ index: 1, delta: { content: "other" } }] },
        { choices: [{ index: 0, delta: null }] },
        stop,
      ),
    ).toEqual([{ type: "finish", reason: "stop" }]);
  });

  it("reads nothing after [DONE]", () => {
    const bytes = Buffer.from(
      `data: ${JSON.stringify(stop)}\n\ndata: [DONE]\n\ndata: {"choices":[{"delta":{"content":"late"}}]}\n\ndata: no JSON\n\n`,
    );
    expect(readBytes([bytes]).map(({ type }) => type)).toEqual(["answer-started", "finish"]);
  });

  for (const [what, line] of [
    ["text that is not JSON", "data: {oops"],
    ["JSON that is not an object", "data: 5"],
    ["choices that are not objects", 'data: {"choices":[5]}'],
    ["content that is not text", 'data: {"choices":[{"delta":{"content":{}}}]}'],
  ] as const)
    it(`refuses ${what} (F9)`, () => {
      const bytes = Buffer.from(`${line}\n\ndata: ${JSON.stringify(stop)}\n\n`);
      expect(() => readBytes([bytes])).toThrow(
        expect.objectContaining({ reason: "invalid_event" }),
      );
    });

  it("skips noise: comments, other fields, events without data and empty data (F9)", () => {
    const noise =
      ": hi\n\nevent: ping\n\nid: 1\nretry: no\nother: 1\nnonsense\n\ndata:\n\ndata: \n\n";
    const bytes = Buffer.from(`${noise}data: ${JSON.stringify(stop)}\n\n${noise}`);
    expect(readBytes([bytes]).map(({ type }) => type)).toEqual(["answer-started", "finish"]);
  });

  it("reads lines that end with CR alone (F9)", () => {
    const bytes = Buffer.from(`data: ${JSON.stringify(stop)}\r\rdata: [DONE]\r\r: bye\r`);
    expect(readBytes([bytes]).map(({ type }) => type)).toEqual(["answer-started", "finish"]);
  });

  it("refuses bytes that are not UTF-8 (F10)", () => {
    const bytes = Buffer.concat([
      Buffer.from('data: {"a":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}\n\n'),
    ]);
    expect(() => readBytes([bytes])).toThrow(expect.objectContaining({ reason: "invalid_event" }));
  });

  it("treats [DONE] without a finish reason as a cut", () => {
    expect(() => readBytes([Buffer.from("data: [DONE]\n\n")])).toThrow(
      expect.objectContaining({ reason: "answer_cut" }),
    );
  });

  it("counts an event's bytes, not its characters (F12)", () => {
    const bytes = Buffer.from(`data: ${JSON.stringify({ ...stop, pad: "世".repeat(40) })}\n\n`);
    expect(readBytes([bytes], bytes.length)).toHaveLength(2);
    expect(() => readBytes([bytes], 150)).toThrow(
      expect.objectContaining({ reason: "event_too_large" }),
    );
    expect(() => readBytes([Buffer.from("data: "), Buffer.alloc(200, "x")], 150)).toThrow(
      expect.objectContaining({ reason: "event_too_large" }),
    );
  });
});
