import { expect, it } from "vitest";
import type { Product } from "../src/product.ts";
import { readAnswer, readStream } from "../src/read-answer.ts";
import {
  chunked,
  data,
  done,
  finish,
  openHead,
  streamHead,
  text,
  usage,
} from "../src/upstream-bytes.ts";
import {
  answering,
  codeOf,
  endings,
  expectFailedStream,
  expectWhole,
  product,
  streaming,
} from "./fixture.ts";

/** The partial text stays on the Step, never joins the Session, and what is not reported is estimated. */
async function expectPartial(of: Product, step: number, said: string): Promise<void> {
  const { id, sessionId, organizationId, outcome } = (await of.steps())[step] ?? {};
  expect(outcome).toBe("failed");
  const contents = await of.store.steps.contents(organizationId ?? null, id ?? "");
  expect(Buffer.from(contents?.reply ?? []).toString()).toContain(`"content":"${said}"`);
  const parts = await of.store.sessions.transcript(organizationId ?? null, sessionId ?? "");
  expect(parts?.every(({ kind }) => kind === "request")).toBe(true);
}

const half = streamHead + chunked(text("Half"));

it("F5 a reset or an end in mid body fails the answer, streamed or not", async () => {
  for (const leave of ["reset", "end"] as const)
    for (const stream of [true, false]) {
      const of = await product(async (exchange) => {
        await exchange.send(half);
        exchange[leave]();
      });
      const answer = await of.ask({ stream });
      if (stream) {
        expectFailedStream(answer);
        expect(readStream(answer).text).toBe("Half");
      } else {
        expect(answer.status).toBe(502);
        expect(codeOf(answer)).toBe("upstream_error");
      }
      await expectPartial(of, 0, "Half");
      const [end] = await endings(of);
      expect(end).toMatchObject({ usageBasis: "estimated", usage: { completionTokens: 2 } });
      expect(of.upstream.requests).toHaveLength(1);
      await expectWhole(of);
    }
});

it("F5 usage that came before the reset is the least that is charged", async () => {
  const of = await product(async ({ send, reset }) => {
    await send(half + chunked(usage(33, 44)));
    reset();
  });
  await of.ask({ stream: true });
  expect(await endings(of)).toMatchObject([
    { usageBasis: "estimated", usage: { promptTokens: 33, completionTokens: 44 } },
  ]);
  await expectWhole(of);
});

it("F6 the end of a body without a length or chunks is not the end of an answer", async () => {
  const of = await product(async ({ send, end }) => {
    await send(openHead + text("Half"));
    end();
  });
  expectFailedStream(await of.ask({ stream: true }));
  expect((await of.ask({ stream: false })).status).toBe(502);
  await expectPartial(of, 0, "Half");
  await expectWhole(of);
});

it("F7 a clean end without a finish reason is not the end of an answer", async () => {
  for (const events of [text("Half"), text("Half") + done, text("Half") + usage(1, 2) + done]) {
    const of = await product(streaming(events));
    expectFailedStream(await of.ask({ stream: true }));
    expect((await of.ask({ stream: false })).status).toBe(502);
    await expectPartial(of, 0, "Half");
    await expectWhole(of);
  }
});

it("F8 after [DONE] an answer is complete at once, and the open socket is closed", async () => {
  const of = await product(
    answering(streamHead + chunked(text("Hi") + finish + usage(3, 4) + done)),
  );
  const answer = await of.ask({ stream: true });
  expect(readStream(answer)).toEqual({ text: "Hi", finishReason: "stop", error: null, done: true });
  expect(await endings(of)).toMatchObject([{ outcome: "completed", usageBasis: "reported" }]);
  of.clock.push(1_000);
  await of.upstream.requests[0]?.closed;
  await expectWhole(of);
});

it("F8 after the finish reason usage is awaited for two seconds, and then estimated", async () => {
  const of = await product(answering(streamHead + chunked(text("Hi") + finish)));
  const client = await of.post({ stream: true });
  await client.until("Hi");
  expect((await of.steps())[0]?.outcome).toBeNull();
  of.clock.push(2_000);
  expect(readStream(readAnswer(await client.ended())).finishReason).toBe("stop");
  expect(await endings(of)).toMatchObject([{ outcome: "completed", usageBasis: "estimated" }]);
  of.clock.push(1_000);
  await of.upstream.requests[0]?.closed;
  await expectWhole(of);
});

it("F17 an error event in mid stream fails the answer and shows nothing of its text", async () => {
  for (const event of [
    data({ error: { message: "secret of the upstream", code: "server_error" } }),
    `event: error\n${data({ message: "secret of the upstream" })}`,
  ]) {
    const of = await product(streaming(text("Half") + event + finish + done));
    const answer = await of.ask({ stream: true });
    expectFailedStream(answer);
    expect(answer.body).not.toContain("secret of the upstream");
    await expectPartial(of, 0, "Half");
    await expectWhole(of);
  }
});
