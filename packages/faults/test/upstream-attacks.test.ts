import { expect, it } from "vitest";
import { conversations, embeddings, messages, type Route, routes } from "../src/endpoints.ts";
import { organization } from "../src/product.ts";
import { readStream } from "../src/read-answer.ts";
import { data, done, finish, json, text, usage } from "../src/upstream-bytes.ts";
import { chatWire } from "../src/upstream-wires.ts";
import {
  endings,
  expectBrokenOff,
  expectWhole,
  inTurn,
  startProduct,
  streamed,
  streaming,
  waysOf,
} from "./fixture.ts";

const delta = (members: object): string => data({ choices: [{ index: 0, delta: members }] });
const nested = (depth: number): string => `${"[".repeat(depth)}1${"]".repeat(depth)}`;
const many = `[${"[],".repeat(210_000)}1]`;
const withLogprobs = (content: string): string =>
  `{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"a"},"logprobs":{"content":${content}},"finish_reason":"stop"}]}`;
const withInput = (input: string): string =>
  `{"type":"tool_use","id":"toolu_1","name":"f","input":${input}}`;
const blockWithInput = (input: string): string =>
  `{"type":"content_block_start","index":7,"content_block":${withInput(input)}}`;
const times = <Item>(count: number, item: (index: number) => Item): readonly Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

/**
 * Where a route's answer has room for any JSON value, as one event and as a whole answer, and why a very deep one fails.
 */
function placeOf({ endpoint, wire }: Route) {
  if (endpoint === embeddings)
    return {
      tooDeep: "invalid_answer",
      event: null,
      whole: (value: string) => `{"object":"list","data":${value}}`,
    };
  if (wire === chatWire) return { tooDeep: "too_deep", event: withLogprobs, whole: withLogprobs };
  return {
    tooDeep: "invalid_event",
    event: blockWithInput,
    whole: (value: string) => `{"content":[${withInput(value)}],"stop_reason":"tool_use"}`,
  };
}

/** A whole answer that calls this many tools. */
const calling = ({ wire }: Route, count: number): object => {
  const calls = times(count, (index) => ({ id: `call_${index}`, name: "f" }));
  if (wire !== chatWire)
    return {
      content: calls.map((call) => ({ type: "tool_use", input: {}, ...call })),
      stop_reason: "tool_use",
    };
  const tool_calls = calls.map(({ id, name }) => ({ id, function: { name, arguments: "{}" } }));
  return { choices: [{ message: { tool_calls }, finish_reason: "tool_calls" }] };
};

it.each(routes)(
  "F60 an answer that no client could process is the provider's failure (H7): $name",
  async (route) => {
    const { opening, text: said, reasoning, toolCall, ending } = route.wire;
    const { tooDeep, event, whole } = placeOf(route);
    const begun = opening(10, 1) + said("Half");
    const streams =
      event === null
        ? []
        : ([
            [`${begun}data: ${event(nested(20_000))}\n\n`, tooDeep],
            [`${begun}data: ${event(many)}\n\n`, "too_many_values"],
            [
              begun + times(129, (at) => toolCall(at, `call_${at}`, "f")).join(""),
              "too_many_tool_calls",
            ],
            [begun + (reasoning("a") + said("b")).repeat(520), "too_many_parts"],
            [begun + said("x".repeat(200_000)).repeat(3), "answer_too_large"],
          ] as const);
    const wholes = [
      [whole(nested(20_000)), tooDeep],
      [whole(many), "too_many_values"],
      ...(event !== null
        ? ([[JSON.stringify(calling(route, 129)), "too_many_tool_calls"]] as const)
        : []),
    ] as const;
    const cases = [
      ...streams.map(([events, reason]) => [streamed(events + ending(10, 5)), reason] as const),
      ...wholes.map(([body, reason]) => [json(200, body), reason] as const),
    ];
    const product = await startProduct(inTurn(cases.map(([bytes]) => bytes)), {
      route,
      gateway: { limits: { answerBytes: 500_000 } },
    });
    for (const [step, [, reason]] of cases.entries()) {
      const [fields] = step < streams.length ? [{ stream: true }] : waysOf(route).slice(-1);
      const answer = await product.ask(fields);
      expectBrokenOff(answer, route.endpoint);
      expect(await endings(product, step)).toMatchObject([{ outcome: "failed", reason }]);
    }
    await expectWhole(product);
  },
);

it("F60 an answer within the limits is passed on", async () => {
  const call = (index: number) => ({
    index,
    id: `call_${index}`,
    function: { name: "f", arguments: "{}" },
  });
  const product = await startProduct(
    streaming(
      `data: ${withLogprobs(nested(60))}\n\n${delta({ tool_calls: times(128, call) })}${finish}${usage(1, 2)}${done}`,
    ),
  );
  const answer = await product.ask({ stream: true });
  expect(answer.status).toBe(200);
  expect(answer.body).toContain(nested(60));
  expect(answer.body).toContain("call_127");
  expect(await endings(product)).toMatchObject([{ outcome: "completed" }]);
  await expectWhole(product);
});

const halves = ["\ud83d", "\ude00"] as const;
const escapedHalf = /\\ud[89a-f]/i;

it.each(conversations)(
  "F61 halves of surrogate pairs are joined, or become U+FFFD if the other half never comes (H15): $name",
  async (route) => {
    const { opening, text: said, reasoning, toolCall, toolInput, ending } = route.wire;
    const events =
      opening(10, 1) +
      reasoning(`r${halves[0]}`) +
      said(`a${halves[0]}`) +
      said(halves[1]) +
      said(`b${halves[0]}`) +
      toolCall(0, `call_${halves[1]}`, `f${halves[0]}`) +
      toolInput(0, `{"a":"${halves[0]}`) +
      toolInput(0, '"}') +
      ending(10, 5);
    const product = await startProduct(
      inTurn([streamed(events), route.plain(`a${halves[0]}b`, 10, 5)]),
      { route },
    );
    const answer = await product.ask({ stream: true });
    expect(route.endpoint.read(answer.body)).toMatchObject({ text: "a😀b\ufffd", error: null });
    const [step] = await product.steps();
    const contents = await product.store.steps.contents(null, step?.id ?? "");
    const [reply] = JSON.parse(Buffer.from(contents?.reply ?? []).toString());
    expect(reply).toMatchObject({
      content: "a😀b\ufffd",
      tool_calls: [
        { id: "call_\ufffd", function: { name: "f\ufffd", arguments: '{"a":"\ufffd"}' } },
      ],
    });
    const whole = await product.ask({ stream: false });
    expect(route.endpoint.read(whole.body)).toMatchObject({ text: "a\ufffdb", isComplete: true });
    expect(answer.body + whole.body).not.toMatch(escapedHalf);
    await expectWhole(product);
  },
);

it("F61 joined halves continue the Session, and are joined in reasoning and replaced in state (H15)", async () => {
  const product = await startProduct(
    streaming(
      delta({ reasoning_content: `r${halves[0]}` }) +
        delta({ reasoning_content: halves[1], extra_content: { [halves[0]]: halves[1] } }) +
        text(`a${halves[0]}`) +
        text(halves[1]) +
        delta({ refusal: `no${halves[1]}` }) +
        delta({ refusal: halves[0] }) +
        data({
          choices: [{ index: 0, delta: {}, logprobs: { content: [{ token: halves[0] }] } }],
        }) +
        finish +
        usage(1, 2) +
        done,
    ),
  );
  const { body } = await product.ask({ stream: true });
  expect(readStream({ body })).toMatchObject({ text: "a😀", error: null });
  expect(body).toContain('"reasoning_content":"😀"');
  expect(body).toMatch(/"extra_content":\{"\ufffd":"[^"]*\ufffd"\}/);
  expect(body).not.toMatch(escapedHalf);
  const [step] = await product.steps();
  const kept = await product.gateway.sessions.transcript({
    organizationId: organization,
    id: step?.sessionId ?? "",
  });
  expect(kept.at(-1)?.messages).toMatchObject([{ content: "a😀", refusal: "no\ufffd\ufffd" }]);
  const next = await product.ask({
    messages: [
      { role: "user", content: "Say hello" },
      { role: "assistant", content: "a😀", refusal: "no\ufffd\ufffd" },
      { role: "user", content: "b" },
    ],
  });
  expect(next.status).toBe(200);
  expect((await product.steps())[1]?.sessionId).toBe(step?.sessionId);
  await expectWhole(product);
});

const tooLong = [
  { error: { message: "no", code: "context_length_exceeded" } },
  { error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" } },
  {
    error: {
      code: 400,
      message: "The input token count (9) exceeds the maximum number of tokens allowed (8).",
      status: "INVALID_ARGUMENT",
    },
  },
  { object: "error", message: "This model's maximum context length is 8" },
];

it.each(routes)(
  "F62 an upstream's error that the context is too long keeps its meaning (H10): $name",
  async (route) => {
    const product = await startProduct(inTurn(tooLong.map((body) => json(400, body))), { route });
    for (const form of tooLong) {
      const answer = await product.ask(waysOf(route)[0]);
      expect(answer.status, JSON.stringify(form)).toBe(400);
      expect(JSON.parse(answer.body).error).toEqual(
        route.endpoint === messages
          ? {
              type: "invalid_request_error",
              message: "prompt is too long: it exceeds this model's maximum context length.",
            }
          : {
              code: "context_length_exceeded",
              type: "invalid_request_error",
              param: null,
              message:
                "The request exceeds this model's maximum context length. Shorten its messages.",
            },
      );
    }
    await expectWhole(product);
  },
);

it.each(routes)(
  "F62 an upstream's error never looks like one of the gateway's (H10): $name",
  async (route) => {
    const codes = ["budget_exceeded", "invalid_api_key", "policy_denied", "not_found"];
    const cases = codes.flatMap((code) => {
      const body = { type: "error", error: { message: "of the provider", code, type: code } };
      return [400, 200].map((status) => ({ code, status, bytes: json(status, body) }));
    });
    const product = await startProduct(inTurn(cases.map(({ bytes }) => bytes)), { route });
    for (const { code, status } of cases) {
      const answer = await product.ask();
      expect(answer.status).toBe(status === 400 ? 400 : 502);
      const error = JSON.parse(answer.body).error;
      const [rejected, failed] =
        route.endpoint === messages
          ? [{ type: "invalid_request_error" }, { type: "api_error" }]
          : [{ code: "upstream_rejected" }, { code: "upstream_error" }];
      expect(error).toMatchObject(status === 400 ? rejected : failed);
      expect(answer.body).not.toContain(code);
      expect(answer.body).not.toContain("of the provider");
    }
    await expectWhole(product);
  },
);
