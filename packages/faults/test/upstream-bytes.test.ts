import { expect, it } from "vitest";
import { conversations, embeddings, routes } from "../src/endpoints.ts";
import { readAnswer } from "../src/read-answer.ts";
import { asksForStream, head, openHead } from "../src/upstream-bytes.ts";
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

const complete = { error: null, isComplete: true, isEnded: true };

it.each(conversations)(
  "F9 skips noise between events, but not broken JSON: $name",
  async (route) => {
    const { opening, text, ending } = route.wire;
    const begun = opening(10, 1) + text("Half");
    const end = ending(10, 5);
    const noisy = [
      `\ufeff: a comment\n\n${begun}data:\n\nevent: nothing\n\nid: 7\nretry: 10\n\n${end}`,
      (begun + end).replaceAll("\n", "\r"),
      (begun + end).replaceAll("\n", "\r\n"),
      `${begun}unknown: field\n\n${end}`,
    ];
    const broken = ["data: {broken\n\n", "data: plain text\n\n", "data: 7\n\n"];
    const answers = [...noisy, ...broken.map((event) => begun + event + end)];
    const product = await startProduct(inTurn(answers.map(streamed)), { route });
    for (const events of noisy) {
      const { body } = await product.ask({ stream: true });
      expect(route.endpoint.read(body), events).toEqual({ text: "Half", ...complete });
      expect(body).not.toContain("a comment");
    }
    for (const event of broken) {
      const answer = await product.ask({ stream: true });
      expect(expectBrokenOff(answer, route.endpoint)).toBe("Half");
      expect(answer.body).not.toContain(event);
    }
    await expectWhole(product);
  },
);

const letters = "añ€😀z";

it.each(conversations)(
  "F10 joins the bytes of one character that arrive apart: $name",
  async (route) => {
    const { opening, text, ending } = route.wire;
    const events = Buffer.from(text(letters) + ending(1, 2));
    const from = events.indexOf(letters);
    const cuts = Array.from({ length: Buffer.byteLength(letters) + 1 }, (_, index) => from + index);
    let seen = Promise.withResolvers<void>();
    const product = await startProduct(
      async ({ send, end }, number) => {
        const at = cuts[number - 1];
        const first = Buffer.from(openHead + opening(1, 1) + text("First "));
        await send(Buffer.concat([first, events.subarray(0, at)]));
        await seen.promise;
        await send(events.subarray(at));
        end();
      },
      { route },
    );
    for (const at of cuts) {
      seen = Promise.withResolvers();
      const client = await product.post({ stream: true });
      // Once the text is there, the whole first part has been read.
      await client.until("First ");
      seen.resolve();
      const { body } = readAnswer(await client.ended());
      const expected = { text: `First ${letters}`, ...complete };
      expect(route.endpoint.read(body), `cut at byte ${at}`).toEqual(expected);
    }
    await expectWhole(product);
  },
);

/** These bytes, but the last of the marks in them is not UTF-8. */
function broken(text: string, mark: string): Buffer {
  const bytes = Buffer.from(text);
  bytes[bytes.lastIndexOf(mark)] = 0xff;
  return bytes;
}

it.each(routes)("F10 bytes that are not UTF-8 fail the answer: $name", async (route) => {
  const { opening, text, ending } = route.wire;
  const seen = Promise.withResolvers<void>();
  const product = await startProduct(
    async ({ send, end, body }) => {
      if (!asksForStream(body)) return send(broken(route.plain("Hello", 10, 5), "-model"));
      await send(openHead + opening(10, 1) + text("Half"));
      await seen.promise;
      await send(broken(text("x@y") + ending(10, 5), "@"));
      end();
    },
    { route },
  );
  for (const fields of waysOf(route)) {
    const client = await product.post(fields);
    if (fields.stream) await client.until("Half");
    seen.resolve();
    const answer = readAnswer(await client.ended());
    expect(expectBrokenOff(answer, route.endpoint)).toBe(fields.stream ? "Half" : "");
    expect(answer.body).not.toContain("\ufffd");
  }
  await expectWhole(product);
});

it.each(conversations)(
  "F11 the forwarded answer equals the stored one, and fragments of tool calls are joined by index: $name",
  async (route) => {
    const { opening, text, toolCall, toolInput, ending } = route.wire;
    const product = await startProduct(
      streaming(
        opening(10, 1) +
          text("A") +
          text("A") +
          toolCall(1, "call-b", "second") +
          toolInput(1, '{"b":') +
          toolCall(0, "call-a", "first") +
          toolInput(0, '{"a":') +
          toolInput(1, "2}") +
          toolInput(0, "1}") +
          ending(10, 5).repeat(2),
      ),
      { route },
    );
    const { body } = await product.ask({ stream: true });
    expect(route.endpoint.read(body)).toMatchObject({ text: "AA", error: null, isEnded: true });
    const [step] = await product.steps();
    const contents = await product.store.steps.contents(null, step?.id ?? "");
    const [reply] = JSON.parse(Buffer.from(contents?.reply ?? []).toString());
    expect(reply.content).toBe("AA");
    const calls: readonly { readonly function: unknown }[] = reply.tool_calls;
    expect(calls.map((call) => call.function)).toEqual(
      expect.arrayContaining([
        { name: "first", arguments: '{"a":1}' },
        { name: "second", arguments: '{"b":2}' },
      ]),
    );
    await expectWhole(product);
  },
);

const plainHead = head("content-type: application/json", "connection: close");

it.each(routes)(
  "F12 cuts off an endless event at its limit, and an endless answer at its own (S25): $name",
  async (route) => {
    const { opening, text } = route.wire;
    const begun = openHead + opening(10, 1) + text("Half");
    const tooLarge = { reason: "answer_too_large" };
    const whole = [[`${plainHead}{"data":[`, "[],".repeat(5_000), tooLarge]] as const;
    const streams = [
      [`${begun}data: `, "x".repeat(16_384), { reason: "event_too_large" }],
      [begun, text("x").repeat(100), tooLarge],
    ] as const;
    const cases = waysOf(route).flatMap((fields) =>
      (fields.stream ? streams : whole).map((bytes) => ({ fields, bytes })),
    );
    const product = await startProduct(
      async ({ send, closed }, number) => {
        const [first, piece] = cases[number - 1]?.bytes ?? ["", ""];
        let isOpen = true;
        void closed.then(() => {
          isOpen = false;
        });
        await send(first);
        while (isOpen) await send(piece);
      },
      { route, gateway: { limits: { upstreamEventBytes: 65_536, upstreamBytes: 131_072 } } },
    );
    for (const [step, { fields, bytes }] of cases.entries()) {
      expectBrokenOff(await product.ask(fields), route.endpoint);
      await product.upstream.requests[step]?.closed;
      expect(await endings(product, step)).toMatchObject([bytes[2]]);
    }
    await expectWhole(product);
  },
);

it.each(routes)(
  "F13 an answer without usage is complete, and its usage is estimated: $name",
  async (route) => {
    const { opening, text, ending } = route.wire;
    const product = await startProduct(
      ({ send, body }) =>
        send(
          asksForStream(body)
            ? streamed(opening() + text("Hello") + ending())
            : route.plain("Hello"),
        ),
      { route },
    );
    for (const [step, fields] of waysOf(route).entries()) {
      const { usageFields, read } = route.endpoint;
      const { status, body } = await product.ask({
        ...fields,
        ...(fields.stream ? usageFields : {}),
      });
      expect(status).toBe(200);
      expect(read(body)).toMatchObject(complete);
      expect(body).not.toContain("prompt_tokens_details");
      const [end] = await endings(product, step);
      const completionTokens = route.endpoint === embeddings ? 0 : 2;
      expect(end).toMatchObject({ usageBasis: "estimated", usage: { completionTokens } });
      expect(body).toMatch(new RegExp(`"(?:prompt|input)_tokens":${end?.usage.promptTokens}\\b`));
    }
    await expectWhole(product);
  },
);

it.each(routes)(
  "F14 the last usage counts, never the sum, and impossible figures are ignored (S19): $name",
  async (route) => {
    const { opening, text, usage, ending } = route.wire;
    const isEmbedding = route.endpoint === embeddings;
    const begun = opening(10, 1) + text("Hello");
    const repeated = [
      [begun + usage(10, 1) + usage(10, 2) + ending(10, 3), 3, "reported"],
      [opening(10, 1) + usage(10, 4) + text("Hello") + ending(), 4, "estimated"],
      [begun + ending(10, 0), 0, "reported"],
      // A later figure that can't be leaves the earlier one, which doesn't count the text after it.
      ...[-5, 1e15].map(
        (figure) =>
          [
            opening(10, 1) + usage(10, 1) + text("Hello") + ending(10, figure),
            2,
            "estimated",
          ] as const,
      ),
    ] as const;
    const impossible = [-5, 1e15].flatMap((figure) =>
      waysOf(route).map(({ stream }) => {
        // Embeddings only report their input.
        const plain = route.plain("Hello", isEmbedding ? figure : 10, figure);
        return [
          stream ? streamed(opening() + text("Hello") + ending(10, figure)) : plain,
          isEmbedding ? 0 : 2,
          "estimated",
          stream,
        ] as const;
      }),
    );
    const cases = [
      ...(isEmbedding ? [] : repeated).map(
        ([events, tokens, basis]) => [streamed(events), tokens, basis, true] as const,
      ),
      ...impossible,
    ];
    const product = await startProduct(inTurn(cases.map(([bytes]) => bytes)), { route });
    for (const [step, [, completionTokens, usageBasis, stream]] of cases.entries()) {
      await product.ask(stream === undefined ? {} : { stream });
      const [end, ...more] = await endings(product, step);
      expect(more).toEqual([]);
      expect(end).toMatchObject({ usageBasis, usage: { completionTokens } });
      expect(end?.usage.promptTokens).toBeGreaterThan(0);
      expect(end?.usage.promptTokens).toBeLessThan(100);
    }
    await expectWhole(product);
  },
);
