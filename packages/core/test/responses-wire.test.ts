import fc from "fast-check";
import { ResponseStream } from "openai/lib/responses/ResponseStream";
import { describe, expect, it } from "vitest";
import { CompletionFold } from "../src/domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../src/domain/completion-event.ts";
import { defaultLimits } from "../src/domain/limits.ts";
import { GatewayError } from "../src/errors/gateway-error.ts";
import { createEventWriter } from "../src/wire/responses/events.ts";
import { listInputItems, storedInput } from "../src/wire/responses/input-items.ts";
import { outputItems } from "../src/wire/responses/output-items.ts";
import { parseResponse } from "../src/wire/responses/parse.ts";
import { type ResponseHead, responseBody } from "../src/wire/responses/response-object.ts";
import { createEventProblems } from "./published-events.ts";
import { createPublishedSchemas } from "./published-schema.ts";

const problems = createPublishedSchemas();
const eventProblems = createEventProblems(problems);
const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };
const asked = {
  model: "sim/acme/echo",
  input: "Weather?",
  instructions: "Be brief.",
  tools: [{ type: "function", name: "get_weather", strict: null }],
  tool_choice: { type: "function", name: "get_weather" },
  text: { format: { type: "json_schema", name: "answer", schema: { type: "object" } } },
  reasoning: { effort: "low", summary: "auto" },
  metadata: { a: "b" },
  user: "u",
};
const headFor = (body: object): ResponseHead => ({
  id: "resp_0190a000000070008000000000000001",
  createdAt: 1_790_000_000_123,
  model: "sim/acme/echo",
  sessionId: "0190a000-0000-7000-8000-000000000002",
  turnId: "0190a000-0000-7000-8000-000000000003",
  previousResponseId: null,
  namespaces: new Map(),
  store: true,
  echo: parseResponse(body, defaultLimits).echo,
});
const head = headFor(asked);

/** One event of a stream, whose framing is checked. */
interface StreamEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

function eventsOf(stream: string): readonly StreamEvent[] {
  const blocks = stream.split("\n\n");
  expect(blocks.pop()).toBe("");
  return blocks.map((block, index) => {
    const [name, data, ...more] = block.split("\n");
    expect(more).toEqual([]);
    const event: StreamEvent = JSON.parse(data?.slice("data: ".length) ?? "");
    expect(name).toBe(`event: ${event.type}`);
    expect(event["sequence_number"]).toBe(index);
    return event;
  });
}

/** Text that tries to break out of its line. */
const hostile = fc.oneof(
  fc.string({ unit: "binary", minLength: 1 }),
  fc.constantFrom("\n\n", "\r", "data: x\n\n", "\u2028", "\ud800", '"', "\\", "\0", "event: error"),
);
const speech = fc.record({
  type: fc.constantFrom("text-delta", "reasoning-delta", "refusal-delta"),
  text: fc.oneof(hostile, fc.constant("")),
});
const call = fc.record({ type: fc.constant("tool-call"), name: hostile, isRepeated: fc.boolean() });
const fragment = fc.record({
  type: fc.constant("tool-call-delta"),
  index: fc.nat(3),
  arguments: fc.oneof(hostile, fc.constant("")),
});
const unseen = fc.constantFrom<CompletionEvent>(
  { type: "answer-started" },
  { type: "usage", usage: { promptTokens: 1 } },
  { type: "logprobs", logprobs: null },
);
/** Details of a text, which may arrive at any time. */
const detail = fc.oneof(
  fc.record({
    type: fc.constant("logprobs" as const),
    logprobs: fc.record({
      content: fc.array(
        fc.record({
          token: hostile,
          logprob: fc.double({ max: -Number.MIN_VALUE, noNaN: true, min: -99 }),
        }),
        { maxLength: 2 },
      ),
    }),
  }),
  fc.record({
    type: fc.constant("shown" as const),
    name: fc.constantFrom("annotations" as const, "images" as const),
    entries: fc.array(
      fc.record({ type: fc.constantFrom("url_citation", "another"), url: hostile, title: hostile }),
      { maxLength: 200 },
    ),
  }),
);
const reasons: readonly FinishReason[] = ["stop", "length", "tool_calls", "content_filter"];

/** Events that a provider may send before it finishes. Calls are numbered in order of appearance. */
const said: fc.Arbitrary<readonly CompletionEvent[]> = fc
  .array(fc.oneof(speech, call, fragment, unseen, detail), { maxLength: 30 })
  .map((drawn) => {
    let calls = 0;
    return drawn.flatMap((event, at): CompletionEvent | [] => {
      if (event.type === "tool-call-delta") return event.index < calls ? event : [];
      if (event.type !== "tool-call") return event;
      // A repeated index starts another call, but further fragments still belong to the first.
      const index = event.isRepeated && calls > 0 ? calls - 1 : calls++;
      return { type: "tool-call-started", index, id: `call_${at}`, name: event.name };
    });
  });

function fold(events: readonly CompletionEvent[]) {
  const folded = new CompletionFold();
  for (const event of events) folded.add(event);
  return folded.completion();
}

const joined = (pieces: Iterable<string>): string => [...pieces].join("");

/** Writes the events in batches that end where `cuts` say. */
function written(
  writer: ReturnType<typeof createEventWriter>,
  events: readonly CompletionEvent[],
  cuts: readonly number[],
): string {
  const ends = [...cuts.map((cut) => cut % (events.length + 1)), events.length].sort(
    (a, b) => a - b,
  );
  return ends
    .map((end, index) => joined(writer.write(events.slice(ends[index - 1] ?? 0, end))))
    .join("");
}

/** The grammar of one item's events, by the kind of its item. */
const grammar: Readonly<Record<string, RegExp>> = {
  message:
    /^output_item\.added content_part\.added (output_text\.delta )+output_text\.done content_part\.done output_item\.done$|^output_item\.added content_part\.added (refusal\.delta )+refusal\.done content_part\.done output_item\.done$/,
  reasoning:
    /^output_item\.added reasoning_summary_part\.added (reasoning_summary_text\.delta )+reasoning_summary_text\.done reasoning_summary_part\.done output_item\.done$/,
  function_call:
    /^output_item\.added (function_call_arguments\.delta )*function_call_arguments\.done output_item\.done$/,
};

interface Item {
  readonly id: string;
  readonly type: string;
  readonly status: string;
}

/** Checks the events between the first two and the terminal ones. Returns the finished items by index. */
function itemsOf(events: readonly StreamEvent[]): readonly Item[] {
  const byIndex = Map.groupBy(events, (event) => Number(event["output_index"]));
  expect([...byIndex.keys()]).toEqual([...byIndex.keys()].map((_, index) => index));
  return [...byIndex.values()].map((own) => {
    const added = own[0]?.["item"];
    const done = own.at(-1)?.["item"];
    if (!isItem(added) || !isItem(done)) throw new Error("an item was not added or not done");
    const names = own
      .map((event) => event.type.slice("response.".length))
      .filter((name) => name !== "output_text.annotation.added")
      .join(" ");
    expect(names).toMatch(grammar[done.type] ?? /^$/);
    expect([done.id, done.type]).toEqual([added.id, added.type]);
    for (const event of own.slice(1, -1)) expect(event["item_id"]).toBe(added.id);
    expectDetails(own, done);
    const deltas = own.flatMap((event) => (event.type.endsWith(".delta") ? event["delta"] : []));
    expect(deltas).not.toContain("");
    const whole = wholeOf(own.find(({ type }) => /(text|refusal|arguments)\.done$/.test(type)));
    expect(deltas.join("")).toBe(whole);
    expect(JSON.stringify(done)).toContain(JSON.stringify(whole));
    return done;
  });
}

/** Annotations come once, before the part is done. Log probabilities come with it at the latest. */
function expectDetails(own: readonly StreamEvent[], done: Item): void {
  const text = own.find(({ type }) => type === "response.output_text.done");
  if (text === undefined) return;
  const listed = (type: string, member: string) =>
    own.flatMap((event) => (event.type === `response.output_text.${type}` ? event[member] : []));
  const annotations = listed("annotation.added", "annotation");
  const logprobs = listed("done", "logprobs");
  expect(done).toMatchObject({ content: [{ annotations, logprobs }] });
  const sent = listed("delta", "logprobs");
  expect(logprobs.slice(0, sent.length)).toEqual(sent);
}

const isItem = (value: unknown): value is Item =>
  typeof value === "object" && value !== null && "id" in value;

const wholeOf = (event: StreamEvent | undefined) =>
  event?.["text"] ?? event?.["refusal"] ?? event?.["arguments"];

/** Messages and reasoning are closed before anything else opens. */
function expectOneSpeaker(events: readonly StreamEvent[]): void {
  let speaking: string | null = null;
  for (const { type, item } of events) {
    if (!isItem(item)) continue;
    if (type === "response.output_item.added") {
      expect(speaking).toBeNull();
      if (item.type !== "function_call") speaking = item.id;
    } else if (item.id === speaking) speaking = null;
  }
}

describe("a streamed response", () => {
  it("is ordered, numbered and valid, and ends with the body of a plain answer", () => {
    fc.assert(
      fc.property(
        said,
        fc.array(fc.nat(), { maxLength: 4 }),
        fc.constantFrom(...reasons),
        (events, cuts, reason) => {
          const finished: readonly CompletionEvent[] = [...events, { type: "finish", reason }];
          const completion = fold(finished);
          const writer = createEventWriter(head);
          const stream =
            writer.start() +
            written(writer, finished, cuts) +
            joined(writer.finish(completion, usage, reason, 1_790_000_001_999));
          const all = eventsOf(stream);
          for (const event of all) expect(eventProblems(event)).toEqual([]);
          const inner = all.slice(2, -1);
          const items = itemsOf(inner);
          expectOneSpeaker(inner);
          expect(items).toEqual(outputItems(completion, head.id));
          expect(all.slice(0, 2).map(({ type }) => type)).toEqual([
            "response.created",
            "response.in_progress",
          ]);
          expect(all.at(-1)?.type).toBe(
            reason === "stop" || reason === "tool_calls"
              ? "response.completed"
              : "response.incomplete",
          );
          const body = responseBody(head, completion, usage, reason, 1_790_000_001_999);
          expect(stream.endsWith(`"response":${body}}\n\n`)).toBe(true);
          expect(problems("Response", JSON.parse(body))).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("that fails closes open items as incomplete, then sends error and response.failed", () => {
    fc.assert(
      fc.property(said, fc.array(fc.nat(), { maxLength: 2 }), (events, cuts) => {
        const writer = createEventWriter(head);
        const stream =
          written(writer, events, cuts) +
          joined(writer.fail(new GatewayError("upstream_error", "The provider failed.")));
        const all = eventsOf(stream);
        for (const event of all) expect(eventProblems(event)).toEqual([]);
        const items = itemsOf(all.slice(2, -2));
        expect(all.slice(-2).map(({ type }) => type)).toEqual(["error", "response.failed"]);
        expect(all.at(-1)?.["response"]).toMatchObject({
          status: "failed",
          output: items,
          usage: null,
        });
        const last = items.at(-1);
        if (last !== undefined) expect(last.status).toBe("incomplete");
      }),
      { numRuns: 200 },
    );
  });

  it("gives the same output when the OpenAI SDK joins it", async () => {
    await fc.assert(
      fc.asyncProperty(said, async (events) => {
        const completion = fold([...events, { type: "finish", reason: "stop" }]);
        const writer = createEventWriter(headFor({ model: "sim/acme/echo", input: "Hello" }));
        const stream =
          written(writer, events, []) +
          joined(writer.finish(completion, usage, "stop", 1_790_000_001_000));
        const lines = eventsOf(stream).map((event) => `${JSON.stringify(event)}\n`);
        const response = await ResponseStream.fromReadableStream(
          new Blob(lines).stream(),
        ).finalResponse();
        expect(response.output).toMatchObject(
          JSON.parse(JSON.stringify(outputItems(completion, head.id))),
        );
      }),
      { numRuns: 50 },
    );
  });
});

describe("the input items of a stored response", () => {
  it("are valid under the published schema", () => {
    const { input } = parseResponse(
      {
        model: "sim/acme/echo",
        input: [
          { role: "developer", content: "Be brief." },
          {
            role: "user",
            content: [
              { type: "input_text", text: "What is this?" },
              { type: "input_image", image_url: "data:image/png;base64,aGk=" },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "refusal", refusal: "No." },
              { type: "input_text", text: "Well." },
            ],
          },
          { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] },
          { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
          { type: "function_call_output", call_id: "call_1", output: "A cat." },
        ],
      },
      defaultLimits,
    );
    const list = JSON.parse(
      listInputItems(storedInput(input, head.id), new URLSearchParams("order=asc")),
    );
    expect(problems("ResponseItemList", list)).toEqual([]);
    expect(list.data).toHaveLength(6);
  });
});

it("the published schema rejects other objects", () => {
  const body = JSON.parse(
    responseBody(head, fold([{ type: "text-delta", text: "a" }]), usage, "stop", 0),
  );
  expect(
    problems("Response", { ...body, output: [{ ...body.output[0], content: [{ type: "text" }] }] }),
  ).not.toEqual([]);
  expect(
    problems("ResponseCompletedEvent", { type: "response.completed", response: body }),
  ).toEqual([" must have required property 'sequence_number'"]);
});
