import { expect, it } from "vitest";
import { readAnswer, readStream } from "../src/read-answer.ts";
import {
  chunked,
  data,
  done,
  finish,
  lastChunk,
  openHead,
  plainAnswer,
  streamHead,
  text,
  usage,
} from "../src/upstream-bytes.ts";
import { endings, expectFailedStream, expectWhole, startProduct, streaming } from "./fixture.ts";

const complete = { finishReason: "stop", error: null, done: true };

it("F9 skips noise between events", async () => {
  for (const events of [
    `\ufeff: a comment\n\n${text("Hi")}data:\n\nevent: nothing\n\nid: 7\nretry: 10\n\n${finish}${done}`,
    (text("Hi") + finish + done).replaceAll("\n", "\r"),
    (text("Hi") + finish + done).replaceAll("\n", "\r\n"),
    `${text("Hi")}unknown: field\n\n${finish}${done}`,
  ]) {
    const product = await startProduct(streaming(events));
    const answer = await product.ask({ stream: true });
    expect(readStream(answer)).toEqual({ text: "Hi", ...complete });
    expect(answer.body).not.toContain("a comment");
    await expectWhole(product);
  }
});

it("F9 an event that is not JSON fails the answer and is never passed on", async () => {
  for (const event of ["data: {broken\n\n", "data: plain text\n\n", "data: 7\n\n"]) {
    const product = await startProduct(streaming(text("Half") + event + finish + done));
    const answer = await product.ask({ stream: true });
    expectFailedStream(answer);
    expect(answer.body).not.toContain(event);
    await expectWhole(product);
  }
});

const letters = "añ€😀z";

it("F10 joins the bytes of one character that arrive apart", async () => {
  const events = Buffer.from(text(letters) + finish + usage(1, 2) + done);
  const from = events.indexOf(letters);
  for (let at = from; at <= from + Buffer.byteLength(letters); at++) {
    const seen = Promise.withResolvers<void>();
    const product = await startProduct(async ({ send, end }) => {
      await send(Buffer.concat([Buffer.from(openHead + text("1")), events.subarray(0, at)]));
      await seen.promise;
      await send(events.subarray(at));
      end();
    });
    const client = await product.post({ stream: true });
    // Once the text is there, the whole first part has been read.
    await client.until('"content":"1"');
    seen.resolve();
    const answer = readAnswer(await client.ended());
    expect(readStream(answer), `cut at byte ${at}`).toEqual({ text: `1${letters}`, ...complete });
    await expectWhole(product);
  }
});

it("F10 bytes that are not UTF-8 fail the answer", async () => {
  const broken = Buffer.from(text("x@y"));
  broken[broken.indexOf("@")] = 0xff;
  const seen = Promise.withResolvers<void>();
  const product = await startProduct(async ({ send, end }) => {
    await send(openHead + text("Half"));
    await seen.promise;
    await send(Buffer.concat([broken, Buffer.from(finish + done)]));
    end();
  });
  const client = await product.post({ stream: true });
  await client.until("Half");
  seen.resolve();
  const answer = readAnswer(await client.ended());
  expectFailedStream(answer);
  expect(answer.body).not.toContain("\ufffd");
  await expectWhole(product);
});

const fragment = (index: number, call: object): string =>
  data({ choices: [{ index: 0, delta: { tool_calls: [{ index, ...call }] } }] });

it("F11 the forwarded answer equals the stored one, and fragments of tool calls are joined by index", async () => {
  const product = await startProduct(
    streaming(
      text("A") +
        text("A") +
        fragment(1, { id: "call-b", function: { name: "second", arguments: '{"b":' } }) +
        fragment(0, { id: "call-a", function: { name: "first", arguments: '{"a":' } }) +
        fragment(1, { function: { arguments: "2}" } }) +
        fragment(0, { function: { arguments: "1}" } }) +
        finish +
        finish +
        done +
        done,
    ),
  );
  const answer = await product.ask({ stream: true });
  expect(readStream(answer)).toEqual({ text: "AA", ...complete });
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
});

it("F12 cuts off an endless event at its limit, and an answer of endless events at its own (S25)", async () => {
  for (const [limits, first, piece] of [
    [{ upstreamEventBytes: 65_536 }, "data: ", "x".repeat(16_384)],
    [{ upstreamBytes: 65_536 }, "", text("x").repeat(100)],
  ] as const) {
    const product = await startProduct(
      async ({ send, closed }) => {
        let isOpen = true;
        void closed.then(() => {
          isOpen = false;
        });
        await send(openHead + text("Half") + first);
        while (isOpen) await send(piece);
      },
      { gateway: { limits } },
    );
    expectFailedStream(await product.ask({ stream: true }));
    await product.upstream.requests[0]?.closed;
    await expectWhole(product);
  }
});

it("F13 an answer without usage is complete, and its usage is estimated", async () => {
  const product = await startProduct(({ send, body }) =>
    send(
      body.includes('"stream":true')
        ? streamHead + chunked(text("Hello") + finish + done) + lastChunk
        : plainAnswer("Hello", null),
    ),
  );
  for (const [step, stream] of [true, false].entries()) {
    const answer = await product.ask({
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    });
    expect(answer.status).toBe(200);
    expect(answer.body).not.toContain("prompt_tokens_details");
    const [end] = await endings(product, step);
    expect(end).toMatchObject({ usageBasis: "estimated", usage: { completionTokens: 2 } });
    expect(answer.body).toContain(`"prompt_tokens":${end?.usage.promptTokens}`);
  }
  await expectWhole(product);
});

it("F14 the last usage counts, never the sum, and impossible figures are ignored (S19)", async () => {
  const base = (last: string): string => text("Hello") + last + finish;
  for (const [events, expected] of [
    [base(usage(10, 1) + usage(10, 2)) + usage(10, 3), { completionTokens: 3, basis: "reported" }],
    [usage(10, 4) + base(""), { completionTokens: 4, basis: "estimated" }],
    [base("") + usage(10, -5), { completionTokens: 2, basis: "estimated" }],
    [base("") + usage(10, 1e15), { completionTokens: 2, basis: "estimated" }],
    [base("") + usage(10, 0), { completionTokens: 0, basis: "reported" }],
  ] as const) {
    const product = await startProduct(streaming(events + done));
    await product.ask({ stream: true });
    const [end, ...more] = await endings(product);
    expect(more).toEqual([]);
    expect(end?.usage.completionTokens).toBe(expected.completionTokens);
    expect(end?.usageBasis).toBe(expected.basis);
    await expectWhole(product);
  }
});
