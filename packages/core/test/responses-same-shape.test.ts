import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventsOf, lastResponse, responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

/** The model's answers: a step with two parallel calls, a step with one call, then text; in the second Turn, a refusal. */
const script = [
  {
    reasoning: "Both cities.",
    text: "Let me see.",
    toolCalls: [
      { name: "get_weather", arguments: '{"city":"Paris"}', id: "call_a" },
      { name: "get_weather", arguments: '{"city":"Rome"}', id: "call_b" },
    ],
    usage: { promptTokens: 11, completionTokens: 21 },
  },
  {
    toolCalls: [{ name: "convert", arguments: '{ "celsius": 24 }', id: "call_c" }],
    usage: { promptTokens: 12, completionTokens: 22, cachedTokens: 3 },
  },
  { text: ["Rome ", "is warmer."], usage: { promptTokens: 13, completionTokens: 23 } },
  { refusal: "I cannot say.", usage: { promptTokens: 14, completionTokens: 24 } },
];

const question = { role: "user", content: "Paris or Rome?" };

/** The client's follow-up to each answer: the results of its calls, the next question, or nothing. */
const followUps: readonly (Readonly<Record<string, string>> | string | null)[] = [
  { call_a: "18", call_b: "24" },
  { call_c: "75 °F" },
  "And tomorrow?",
  null,
];

/** The same follow-up in each protocol's format. */
function followUp(
  said: (typeof followUps)[number],
  toOutput: (callId: string, output: string) => object,
): readonly object[] {
  if (said === null) return [];
  if (typeof said === "string") return [{ role: "user", content: said }];
  return Object.entries(said).map(([callId, output]) => toOutput(callId, output));
}

type Test = Pick<TestGateway, "gateway" | "chat" | "key">;
type Conversation = (test: Test) => Promise<void>;

const throughChat: Conversation = async ({ gateway, chat }) => {
  const messages: object[] = [question];
  for (const said of followUps) {
    const { choices } = await completionOf(gateway.fetch(chat({ messages })));
    const toOutput = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
    messages.push(choices[0].message, ...followUp(said, toOutput));
  }
};

/** The client sends its own history each time or names a stored response, with plain or streamed answers. */
const throughResponses =
  (way: { readonly chained: boolean; readonly stream: boolean }): Conversation =>
  async ({ gateway, key }) => {
    const { create, post } = responsesOf(gateway, key.secret);
    const { stream } = way;
    let fields: Readonly<Record<string, unknown>> = {};
    let input: readonly object[] = [question];
    for (const said of followUps) {
      const asked = { ...fields, input, stream, store: way.chained };
      const answer = stream ? lastResponse(await eventsOf(post(asked))) : await create(asked);
      const next = followUp(said, (callId, output) => ({
        type: "function_call_output",
        call_id: callId,
        output,
      }));
      fields = way.chained ? { previous_response_id: answer.id } : {};
      input = way.chained ? next : [...input, ...answer.output, ...next];
    }
  };

/** The record of a conversation without ids and times. Chain values distinguish every message. */
async function shapeOf({ gateway, key }: Test) {
  const filter = { organizationId: key.organizationId, key: key.id };
  const steps = (await gateway.steps.list(filter)).data.toReversed();
  const turns = [...new Set(steps.map(({ turnId }) => turnId))];
  const sessions = (await gateway.sessions.list(filter)).data;
  return {
    sessions: sessions.map(({ length, branchedFromSessionId }) => [length, branchedFromSessionId]),
    steps: steps.map((step) => ({
      session: sessions.findIndex(({ id }) => id === step.sessionId),
      turn: turns.indexOf(step.turnId),
      number: step.stepNumber,
      outcome: step.outcome,
      tokens: [step.promptTokens, step.completionTokens, step.totalTokens, step.cachedTokens],
      basis: step.usageBasis,
      cost: step.costNanoUsd,
      heads: [step.head, step.replyHead],
      toolCalls: step.attempts[0]?.toolCalls,
    })),
    activity: (await gateway.activity.list(filter)).data.map((row) => row.totalTokens),
  };
}

describe.each(stores)("the same conversation, on %s", (_, open) => {
  it("has the same shape in Chat, in stateless Responses and in chained Responses", async () => {
    const test = await createTestGateway({ store: open() });
    const shape = async (conversation: Conversation) => {
      for (const answer of script) test.provider.reply(answer);
      const own = { gateway: test.gateway, ...(await test.createKey()) };
      await conversation(own);
      return shapeOf(own);
    };
    const expected = await shape(throughChat);
    expect(expected.sessions).toEqual([[9, null]]);
    expect(expected.steps.map(({ turn, number }) => [turn, number])).toEqual([
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0],
    ]);
    expect(expected.steps.map(({ cost }) => cost)).toEqual([53_000, 56_000, 59_000, 62_000]);
    for (const chained of [false, true])
      for (const stream of [false, true])
        expect(await shape(throughResponses({ chained, stream })), `${chained} ${stream}`).toEqual(
          expected,
        );
  });
});
