import { describe, expect, it } from "vitest";
import type { Completion } from "../../domain/completion.ts";
import { CompletionFold } from "../../domain/completion.ts";
import type { CompletionEvent } from "../../domain/completion-event.ts";
import { defaultLimits } from "../../domain/limits.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { createEventWriter } from "./events.ts";
import { parseResponse } from "./parse.ts";
import { type ResponseHead, responseBody, responseObject } from "./response-object.ts";

const opaque = "0190a00000007000800000000000000a";
const head: ResponseHead = {
  id: `resp_${opaque}`,
  createdAt: 1_790_000_000_000,
  model: "sim/acme/echo",
  sessionId: "0190a000-0000-7000-8000-000000000001",
  turnId: "0190a000-0000-7000-8000-000000000002",
  previousResponseId: null,
  namespaces: new Map(),
  store: true,
  echo: parseResponse({ model: "sim/acme/echo", input: "Hello" }, defaultLimits).echo,
};
const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };

function foldOf(events: readonly CompletionEvent[]): Completion {
  const fold = new CompletionFold();
  for (const event of events) fold.add(event);
  return fold.completion();
}

/** The stream as it must be: numbered and framed. */
const framed = (events: readonly (readonly [type: string, members: string])[], from = 0) =>
  events
    .map(
      ([type, members], at) =>
        `event: ${type}\ndata: {"type":"${type}","sequence_number":${from + at},${members}}\n\n`,
    )
    .join("");

const started = JSON.stringify(responseObject(head, { status: "in_progress" }));
const beginning = [
  ["response.created", `"response":${started}`],
  ["response.in_progress", `"response":${started}`],
] as const;

/** The writer with the pieces of its texts joined. */
function writerOf(of: ResponseHead) {
  const { start, write, finish, fail } = createEventWriter(of);
  return {
    start,
    write: (...given: Parameters<typeof write>) => [...write(...given)].join(""),
    finish: (...given: Parameters<typeof finish>) => [...finish(...given)].join(""),
    fail: (...given: Parameters<typeof fail>) => [...fail(...given)].join(""),
  };
}

/** The names of a stream's events. */
const namesOf = (stream: string) =>
  [...stream.matchAll(/^event: (.*)$/gm)].map(([, name = ""]) => name.replace("response.", ""));

describe("createEventWriter", () => {
  it("writes every event that repeats the answer as a separate piece", () => {
    const writer = createEventWriter(head);
    const large = "x".repeat(1_000);
    const events: readonly CompletionEvent[] = [
      { type: "reasoning-delta", text: large },
      { type: "text-delta", text: large },
      { type: "finish", reason: "stop" },
    ];
    const pieces = [
      ...writer.write(events),
      ...writer.finish(foldOf(events), usage, "stop", 1_790_000_001_000),
    ];
    const repeating = (piece: string) =>
      namesOf(piece).filter((name) => !/added$|delta$/.test(name)).length;
    expect(Math.max(...pieces.slice(1).map(repeating))).toBe(1);
  });

  it("writes the bytes of a text answer", () => {
    const writer = writerOf(head);
    expect(writer.start()).toBe(framed(beginning));
    const place = `"item_id":"msg_${opaque}_o0","output_index":0,"content_index":0`;
    const item = `{"id":"msg_${opaque}_o0","type":"message","status":`;
    const part = (text: string) =>
      `{"type":"output_text","text":"${text}","annotations":[],"logprobs":[]}`;
    const first = [
      [
        "response.output_item.added",
        `"output_index":0,"item":${item}"in_progress","role":"assistant","content":[]}`,
      ],
      ["response.content_part.added", `${place},"part":${part("")}`],
      ["response.output_text.delta", `${place},"delta":"He","logprobs":[]`],
    ] as const;
    expect(writer.write([{ type: "text-delta", text: "He" }])).toBe(framed(first, 2));
    expect(
      writer.write([
        { type: "text-delta", text: "y" },
        { type: "finish", reason: "stop" },
      ]),
    ).toBe(framed([["response.output_text.delta", `${place},"delta":"y","logprobs":[]`]], 5));
    const completion = foldOf([
      { type: "text-delta", text: "Hey" },
      { type: "finish", reason: "stop" },
    ]);
    const body = responseBody(head, completion, usage, "stop", 1_790_000_001_000);
    expect(writer.finish(completion, usage, "stop", 1_790_000_001_000)).toBe(
      framed(
        [
          ["response.output_text.done", `${place},"text":"Hey","logprobs":[]`],
          ["response.content_part.done", `${place},"part":${part("Hey")}`],
          [
            "response.output_item.done",
            `"output_index":0,"item":${item}"completed","role":"assistant","content":[${part("Hey")}]}`,
          ],
          ["response.completed", `"response":${body}`],
        ],
        6,
      ),
    );
  });

  it("writes the bytes of a function call, with its name in the first event", () => {
    const writer = writerOf(head);
    writer.start();
    const place = `"item_id":"fc_${opaque}_o0","output_index":0`;
    const item = (status: string, written: string) =>
      `{"id":"fc_${opaque}_o0","type":"function_call","status":"${status}","call_id":"call_1","name":"look","arguments":"${written}"}`;
    expect(
      writer.write([
        { type: "tool-call-started", index: 0, id: "call_1", name: "look" },
        { type: "tool-call-delta", index: 0, arguments: "{" },
        { type: "tool-call-delta", index: 0, arguments: "" },
        { type: "tool-call-delta", index: 0, arguments: "}" },
      ]),
    ).toBe(
      framed(
        [
          ["response.output_item.added", `"output_index":0,"item":${item("in_progress", "")}`],
          ["response.function_call_arguments.delta", `${place},"delta":"{"`],
          ["response.function_call_arguments.delta", `${place},"delta":"}"`],
        ],
        2,
      ),
    );
    const failed = writer.fail(new GatewayError("upstream_error", "The provider failed."));
    expect(
      failed.startsWith(
        framed(
          [
            ["response.function_call_arguments.done", `${place},"name":"look","arguments":"{}"`],
            ["response.output_item.done", `"output_index":0,"item":${item("incomplete", "{}")}`],
          ],
          5,
        ),
      ),
    ).toBe(true);
  });

  it("writes reasoning as a summary, then the refusal as a separate item", () => {
    const writer = writerOf(head);
    writer.start();
    const written = writer.write([
      { type: "reasoning-delta", text: "Hm." },
      { type: "refusal-delta", text: "No." },
    ]);
    expect(namesOf(written)).toEqual([
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
      "output_item.added",
      "content_part.added",
      "refusal.delta",
    ]);
    expect(written).toContain(
      `"item_id":"rs_${opaque}_o0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"Hm."}`,
    );
    expect(written).toContain(
      `"item_id":"msg_${opaque}_o1","output_index":1,"content_index":0,"delta":"No."`,
    );
  });

  it("keeps parallel calls open until the end, and closes them in the order of the output", () => {
    const writer = writerOf(head);
    const events: readonly CompletionEvent[] = [
      { type: "text-delta", text: "I look." },
      { type: "tool-call-started", index: 0, id: "call_1", name: "look" },
      { type: "tool-call-started", index: 1, id: "call_2", name: "look" },
      { type: "tool-call-delta", index: 0, arguments: "{}" },
      { type: "text-delta", text: "Twice." },
      { type: "tool-call-delta", index: 1, arguments: "{}" },
      { type: "finish", reason: "tool_calls" },
    ];
    writer.write(events);
    const end = writer.finish(foldOf(events), usage, "tool_calls", 0);
    expect(
      [...end.matchAll(/output_item\.done.*?"output_index":(\d)/gs)].map(([, at]) => at),
    ).toEqual(["1", "2", "3"]);
  });

  it("writes its opening events by itself, once", () => {
    const failure = new GatewayError("upstream_error", "The provider failed.");
    expect(namesOf(writerOf(head).fail(failure))).toEqual([
      "created",
      "in_progress",
      "error",
      "failed",
    ]);
    const writer = writerOf(head);
    expect(namesOf(writer.write([{ type: "text-delta", text: "" }]))).toEqual([
      "created",
      "in_progress",
    ]);
    expect(writer.start()).toBe("");
  });

  it("reports a failure flat and nested, with a code that clients know", () => {
    const writer = writerOf(head);
    writer.start();
    const error = new GatewayError("rate_limit_exceeded", "Too many.");
    const failed = JSON.stringify(responseObject(head, { status: "failed", output: [], error }));
    expect(writer.fail(error)).toBe(
      framed(
        [
          [
            "error",
            `"code":"rate_limit_exceeded","message":"Too many.","param":null,"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"Too many.","param":null}`,
          ],
          ["response.failed", `"response":${failed}`],
        ],
        2,
      ),
    );
  });

  it("ends an empty answer with an empty output", () => {
    const writer = writerOf(head);
    const stream = writer.finish(foldOf([]), usage, "stop", 0);
    expect(namesOf(stream)).toEqual(["created", "in_progress", "completed"]);
    expect(stream).toContain('"output":[]');
  });
});
