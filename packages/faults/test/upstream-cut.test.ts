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
  startProduct,
  streaming,
} from "./fixture.ts";

/** Checks that the partial text is kept with the Step, never joins the Session, and unreported usage is estimated. */
async function expectPartial(product: Product, step: number, said: string): Promise<void> {
  const { id, sessionId, organizationId, outcome } = (await product.steps())[step] ?? {};
  expect(outcome).toBe("failed");
  const contents = await product.store.steps.contents(organizationId ?? null, id ?? "");
  expect(Buffer.from(contents?.reply ?? []).toString()).toContain(`"content":"${said}"`);
  const parts = await product.store.sessions.transcript(organizationId ?? null, sessionId ?? "");
  expect(parts?.every(({ kind }) => kind === "request")).toBe(true);
}

const half = streamHead + chunked(text("Half"));

it("F5 a reset or an end in the middle of a body fails the answer, streamed or not (S20)", async () => {
  for (const leave of ["reset", "end"] as const)
    for (const stream of [true, false]) {
      const product = await startProduct(async (exchange) => {
        await exchange.send(half);
        exchange[leave]();
      });
      const answer = await product.ask({ stream });
      if (stream) {
        expectFailedStream(answer);
        expect(readStream(answer).text).toBe("Half");
      } else {
        expect(answer.status).toBe(502);
        expect(codeOf(answer)).toBe("upstream_error");
      }
      await expectPartial(product, 0, "Half");
      const [end] = await endings(product);
      expect(end).toMatchObject({ usageBasis: "estimated", usage: { completionTokens: 2 } });
      expect(product.upstream.requests).toHaveLength(1);
      await expectWhole(product);
    }
});

it("F5 the charge is at least the usage reported before a reset", async () => {
  const product = await startProduct(async ({ send, reset }) => {
    await send(half + chunked(usage(33, 44)));
    reset();
  });
  await product.ask({ stream: true });
  expect(await endings(product)).toMatchObject([
    { usageBasis: "estimated", usage: { promptTokens: 33, completionTokens: 44 } },
  ]);
  await expectWhole(product);
});

it("F6 the end of a body without a length or chunks is not the end of an answer (S20)", async () => {
  const product = await startProduct(async ({ send, end }) => {
    await send(openHead + text("Half"));
    end();
  });
  expectFailedStream(await product.ask({ stream: true }));
  expect((await product.ask({ stream: false })).status).toBe(502);
  await expectPartial(product, 0, "Half");
  await expectWhole(product);
});

it("F7 a clean end without a finish reason is not the end of an answer (S20)", async () => {
  for (const events of [text("Half"), text("Half") + done, text("Half") + usage(1, 2) + done]) {
    const product = await startProduct(streaming(events));
    expectFailedStream(await product.ask({ stream: true }));
    expect((await product.ask({ stream: false })).status).toBe(502);
    await expectPartial(product, 0, "Half");
    await expectWhole(product);
  }
});

it("F8 after [DONE] an answer is complete at once, and the open socket is closed (S20)", async () => {
  const product = await startProduct(
    answering(streamHead + chunked(text("Hi") + finish + usage(3, 4) + done)),
  );
  const answer = await product.ask({ stream: true });
  expect(readStream(answer)).toEqual({ text: "Hi", finishReason: "stop", error: null, done: true });
  expect(await endings(product)).toMatchObject([{ outcome: "completed", usageBasis: "reported" }]);
  product.clock.push(1_000);
  await product.upstream.requests[0]?.closed;
  await expectWhole(product);
});

it("F8 after the finish reason usage is awaited for two seconds, and then estimated", async () => {
  const product = await startProduct(answering(streamHead + chunked(text("Hi") + finish)));
  const client = await product.post({ stream: true });
  await client.until("Hi");
  expect((await product.steps())[0]?.outcome).toBeNull();
  product.clock.push(2_000);
  expect(readStream(readAnswer(await client.ended())).finishReason).toBe("stop");
  expect(await endings(product)).toMatchObject([{ outcome: "completed", usageBasis: "estimated" }]);
  product.clock.push(1_000);
  await product.upstream.requests[0]?.closed;
  await expectWhole(product);
});

it("F17 an error event in the middle of a stream fails the answer and reveals nothing of its text", async () => {
  for (const event of [
    data({ error: { message: "secret of the upstream", code: "server_error" } }),
    `event: error\n${data({ message: "secret of the upstream" })}`,
  ]) {
    const product = await startProduct(streaming(text("Half") + event + finish + done));
    const answer = await product.ask({ stream: true });
    expectFailedStream(answer);
    expect(answer.body).not.toContain("secret of the upstream");
    await expectPartial(product, 0, "Half");
    await expectWhole(product);
  }
});
