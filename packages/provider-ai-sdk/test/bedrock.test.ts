import { describe, expect, it } from "vitest";
import { answer, callUpstream, saidBy, textOf } from "./drive.ts";
import { bedrock, delta, ending, frame, frameType, whole } from "./native/bedrock.ts";
import { said, tool } from "./native/vendor.ts";

const start = frame("messageStart", { role: "assistant" });
const half = Buffer.concat([start, delta({ text: "Half" })]);
const text = Buffer.concat([start, ...said.map((text) => delta({ text })), ending("end_turn")]);
const usage = { promptTokens: 12, completionTokens: 5, cachedTokens: 4, cacheWriteTokens: 0 };
const startTool = frame("contentBlockStart", {
  contentBlockIndex: 0,
  start: { toolUse: { toolUseId: "tooluse_1", name: tool.name } },
});
const toolCall = Buffer.concat([
  start,
  startTool,
  delta({ toolUse: { input: '{"city":' } }),
  delta({ toolUse: { input: '"Zürich"}' } }),
  ending("tool_use"),
]);

const streamed = (bytes: Buffer, over = {}) =>
  callUpstream(bedrock, ({ send }) => send(answer(frameType, bytes)), over);

describe("aiSdk over Amazon Bedrock's frames", () => {
  it("reads text and usage from a stream", async () => {
    const { events, thrown, upstream } = await streamed(text);
    expect(thrown).toBeNull();
    expect(textOf(events)).toBe(said.join(""));
    expect(events.at(-2)).toEqual({ type: "usage", usage });
    expect(events.at(-1)).toEqual({ type: "finish", reason: "stop" });
    expect(upstream.requests[0]?.head).toContain("POST /model/model/converse-stream");
    expect(upstream.requests[0]?.head).toContain("sk-platform-secret");
  });

  it("gives the same output for bytes that arrive one by one", async () => {
    const { events } = await callUpstream(bedrock, async ({ send }) => {
      for (const byte of answer(frameType, text)) await send(Buffer.from([byte]));
    });
    expect(textOf(events)).toBe(said.join(""));
  });

  it("reads text from a plain body", async () => {
    const { events, thrown } = await callUpstream(
      bedrock,
      ({ send }) => send(answer("application/json", whole("end_turn", { text: said.join("") }))),
      { stream: false },
    );
    expect(thrown).toBeNull();
    expect(textOf(events)).toBe(said.join(""));
    expect(events.at(-2)).toEqual({ type: "usage", usage });
  });

  it("reads a tool call from a stream and from a plain body", async () => {
    const { events } = await streamed(toolCall);
    expect(events.filter(({ type }) => /tool|finish/.test(type))).toEqual([
      { type: "tool-call-started", index: 0, id: "tooluse_1", name: tool.name },
      { type: "tool-call-delta", index: 0, arguments: '{"city":' },
      { type: "tool-call-delta", index: 0, arguments: '"Zürich"}' },
      { type: "finish", reason: "tool_calls" },
    ]);
    const toolUse = { toolUseId: "tooluse_1", ...tool };
    const plain = await callUpstream(
      bedrock,
      ({ send }) => send(answer("application/json", whole("tool_use", { toolUse }))),
      { stream: false },
    );
    expect(plain.events.filter(({ type }) => /tool|finish/.test(type))).toEqual([
      { type: "tool-call-started", index: 0, id: "tooluse_1", name: tool.name },
      { type: "tool-call-delta", index: 0, arguments: JSON.stringify(tool.input) },
      { type: "finish", reason: "tool_calls" },
    ]);
  });

  it("fails on a stream that is cut off", async () => {
    const { events, thrown } = await streamed(half);
    expect(textOf(events)).toBe("Half");
    expect(saidBy(thrown)).toEqual({ reason: "answer_cut", delivery: "unknown", status: 200 });
  });

  it("fails on an exception instead of an end", async () => {
    const exception = frame("throttlingException", { message: "slow down" }, "exception");
    const late = await streamed(Buffer.concat([half, exception]));
    expect(saidBy(late.thrown)).toEqual({
      reason: "upstream_error",
      delivery: "unknown",
      status: 200,
    });
    const early = await streamed(Buffer.concat([start, exception]));
    expect(saidBy(early.thrown)).toMatchObject({ delivery: "answered", status: 429 });
  });

  it("fails on a frame whose checksum is wrong", async () => {
    const broken = Buffer.from(text);
    broken[start.length + 4] = 1;
    const { thrown } = await streamed(broken);
    expect(saidBy(thrown)).toMatchObject({ delivery: "unknown" });
  });

  it("fails on a frame larger than the call allows", async () => {
    const maxEventBytes = Math.max(
      ...[start, delta({ text: said[0] }), ending("end_turn")].map(length),
    );
    const fits = await streamed(text, {
      limits: { eventBytes: maxEventBytes, totalBytes: 100_000 },
    });
    expect(fits.thrown).toBeNull();
    const large = Buffer.concat([start, delta({ text: "x".repeat(400) }), ending("end_turn")]);
    const { thrown } = await streamed(large, {
      limits: { eventBytes: 400, totalBytes: 100_000 },
    });
    expect(saidBy(thrown)).toMatchObject({ reason: "event_too_large", delivery: "unknown" });
  });
});

const length = (bytes: Buffer): number => bytes.length;
