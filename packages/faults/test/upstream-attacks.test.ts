import { describe, expect, it } from "vitest";
import { organization } from "../src/product.ts";
import { readStream } from "../src/read-answer.ts";
import { data, done, finish, json, plainAnswer, text, usage } from "../src/upstream-bytes.ts";
import {
  answering,
  codeOf,
  endings,
  expectFailedStream,
  expectWhole,
  startProduct,
  streaming,
} from "./fixture.ts";

const delta = (members: object): string => data({ choices: [{ index: 0, delta: members }] });
const nested = (depth: number): string => `${"[".repeat(depth)}1${"]".repeat(depth)}`;
const withLogprobs = (content: string): string =>
  `{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"a"},"logprobs":{"content":${content}},"finish_reason":"stop"}]}`;
const call = (index: number): object => ({
  index,
  id: `call_${index}`,
  function: { name: "f", arguments: "{}" },
});
const calls = (count: number): readonly object[] =>
  Array.from({ length: count }, (_, index) => call(index));

describe("F60 an answer that no client could process is the provider's failure (H7)", () => {
  it.each([
    ["nests too deep", withLogprobs(nested(20_000)), "too_deep"],
    [
      "calls too many tools",
      JSON.stringify({ choices: [{ delta: { tool_calls: calls(129) } }] }),
      "too_many_tool_calls",
    ],
  ])("in a stream that %s", async (_, event, reason) => {
    const product = await startProduct(
      streaming(`${text("Half")}data: ${event}\n\n${finish}${done}`),
    );
    expectFailedStream(await product.ask({ stream: true }));
    expect(await endings(product)).toMatchObject([{ outcome: "failed", reason }]);
    await expectWhole(product);
  });

  it.each([
    ["nests too deep", withLogprobs(nested(20_000)), "too_deep"],
    [
      "calls too many tools",
      JSON.stringify({
        choices: [{ message: { tool_calls: calls(129) }, finish_reason: "tool_calls" }],
      }),
      "too_many_tool_calls",
    ],
  ])("in a whole answer that %s", async (_, body, reason) => {
    const product = await startProduct(answering(json(200, body)));
    const answer = await product.ask();
    expect(answer.status).toBe(502);
    expect(codeOf(answer)).toBe("upstream_error");
    expect(await endings(product)).toMatchObject([{ outcome: "failed", reason }]);
    await expectWhole(product);
  });

  it("in a stream whose text and reasoning alternate without end", async () => {
    const parts = (delta({ reasoning_content: "a" }) + text("b")).repeat(520);
    const product = await startProduct(streaming(parts + finish + done));
    expectFailedStream(await product.ask({ stream: true }));
    expect(await endings(product)).toMatchObject([{ outcome: "failed", reason: "too_many_parts" }]);
    await expectWhole(product);
  });

  it("in a stream longer than the limit", async () => {
    const product = await startProduct(
      streaming(text("x".repeat(1_000_000)).repeat(3) + finish + done),
    );
    expectFailedStream(await product.ask({ stream: true }));
    expect(await endings(product)).toMatchObject([
      { outcome: "failed", reason: "answer_too_large" },
    ]);
    await expectWhole(product);
  });

  const many = `[${"[],".repeat(210_000)}1]`;

  it("in an event with more values than the limit", async () => {
    const product = await startProduct(
      streaming(`${text("Half")}data: ${withLogprobs(many)}\n\n${done}`),
    );
    expectFailedStream(await product.ask({ stream: true }));
    expect(await endings(product)).toMatchObject([
      { outcome: "failed", reason: "too_many_values" },
    ]);
    await expectWhole(product);
  });

  it("in a whole answer with more values than the limit", async () => {
    const product = await startProduct(answering(json(200, withLogprobs(many))));
    expect((await product.ask()).status).toBe(502);
    expect(await endings(product)).toMatchObject([
      { outcome: "failed", reason: "too_many_values" },
    ]);
    await expectWhole(product);
  });

  it("and passes on answers within the limits", async () => {
    const product = await startProduct(
      streaming(
        `data: ${withLogprobs(nested(60))}\n\n${delta({ tool_calls: calls(128) })}${finish}${usage(1, 2)}${done}`,
      ),
    );
    const answer = await product.ask({ stream: true });
    expect(answer.status).toBe(200);
    expect(answer.body).toContain(nested(60));
    expect(answer.body).toContain("call_127");
    expect(await endings(product)).toMatchObject([{ outcome: "completed" }]);
    await expectWhole(product);
  });
});

const halves = ["\ud83d", "\ude00"] as const;

describe("F61 halves of surrogate pairs (H15)", () => {
  it("are joined where deltas split them, and the client's copy continues the Session", async () => {
    const product = await startProduct(
      streaming(
        delta({ reasoning_content: `r${halves[0]}` }) +
          delta({ reasoning_content: halves[1] }) +
          text(`a${halves[0]}`) +
          text(halves[1]) +
          text("b") +
          finish +
          usage(1, 2) +
          done,
      ),
    );
    const answer = await product.ask({ stream: true });
    expect(readStream(answer)).toMatchObject({ text: "a😀b", error: null });
    expect(answer.body).toContain("😀");
    expect(answer.body).not.toContain("\\ud83d");
    const next = await product.ask({
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "a😀b" },
        { role: "user", content: "b" },
      ],
    });
    expect(next.status).toBe(200);
    await expectWhole(product);
  });

  it("are joined in reasoning that goes back under the provider's name, and replaced in state", async () => {
    const product = await startProduct(
      streaming(
        delta({ reasoning_content: `r${halves[0]}` }) +
          delta({ reasoning_content: halves[1], extra_content: { [halves[0]]: halves[1] } }) +
          text("a") +
          finish +
          usage(1, 2) +
          done,
      ),
    );
    const { body } = await product.ask({ stream: true });
    expect(body).toContain('"reasoning_content":"😀"');
    expect(body).toMatch(/"extra_content":\{"\ufffd":"[^"]*\ufffd"\}/);
    expect(body).not.toMatch(/\\ud[89a-f]/i);
    await expectWhole(product);
  });

  it("become U+FFFD if the other half never comes, in the sent and the stored text", async () => {
    const toolCall = {
      index: 0,
      id: `call_${halves[1]}`,
      function: { name: `f${halves[0]}`, arguments: `"${halves[0]}` },
    };
    const product = await startProduct(
      streaming(
        text(`a${halves[0]}`) +
          delta({ refusal: `no${halves[1]}` }) +
          delta({ refusal: halves[0] }) +
          delta({ tool_calls: [toolCall] }) +
          delta({ tool_calls: [{ index: 0, function: { arguments: '"' } }] }) +
          data({
            choices: [{ index: 0, delta: {}, logprobs: { content: [{ token: halves[0] }] } }],
          }) +
          text(`z${halves[0]}`) +
          finish +
          usage(1, 2) +
          done,
      ),
    );
    const answer = await product.ask({ stream: true });
    expect(readStream(answer)).toMatchObject({ text: "a\ufffdz\ufffd", error: null });
    expect(answer.body).not.toMatch(/\\ud[89a-f]/i);
    const [step] = await product.steps();
    const kept = await product.gateway.sessions.transcript({
      organizationId: organization,
      id: step?.sessionId ?? "",
    });
    expect(kept.at(-1)?.messages).toMatchObject([
      {
        content: "a\ufffdz\ufffd",
        refusal: "no\ufffd\ufffd",
        tool_calls: [{ id: "call_\ufffd", function: { name: "f\ufffd", arguments: '"\ufffd"' } }],
      },
    ]);
    await expectWhole(product);
  });

  it("are replaced in a whole answer, too", async () => {
    const product = await startProduct(answering(plainAnswer(`a${halves[0]}b`)));
    const answer = await product.ask();
    expect(JSON.parse(answer.body).choices[0].message.content).toBe("a\ufffdb");
    await expectWhole(product);
  });
});

describe("F62 an upstream's error (H10)", () => {
  it.each([
    ["an OpenAI code", 400, { error: { message: "no", code: "context_length_exceeded" } }],
    [
      "Anthropic's words",
      400,
      { error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" } },
    ],
    [
      "Gemini's words",
      400,
      {
        error: {
          code: 400,
          message: "The input token count (9) exceeds the maximum number of tokens allowed (8).",
          status: "INVALID_ARGUMENT",
        },
      },
    ],
    ["vLLM's form", 400, { object: "error", message: "This model's maximum context length is 8" }],
  ])("that the context is too long keeps its meaning in %s", async (_, status, body) => {
    const product = await startProduct(answering(json(status, body)));
    const answer = await product.ask();
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).error).toMatchObject({
      code: "context_length_exceeded",
      type: "invalid_request_error",
      message: "The request exceeds this model's maximum context length. Shorten its messages.",
    });
    await expectWhole(product);
  });

  it("never looks like one of the gateway's errors", async () => {
    for (const code of ["budget_exceeded", "invalid_api_key", "policy_denied", "not_found"]) {
      const error = { message: "of the provider", code, type: code };
      for (const bytes of [json(400, { error }), json(200, { error })]) {
        const product = await startProduct(answering(bytes));
        const answer = await product.ask();
        expect(codeOf(answer)).toMatch(/^upstream_(?:rejected|error)$/);
        expect(answer.body).not.toContain(code);
        expect(answer.body).not.toContain("of the provider");
        await expectWhole(product);
      }
    }
  });
});
