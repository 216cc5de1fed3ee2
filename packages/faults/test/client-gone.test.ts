import { setImmediate as nextTurn } from "node:timers/promises";
import { faultyStore, type RawClient, type RunningFault } from "@tollgate/testing";
import { expect, it } from "vitest";
import { readAnswer, readStream } from "../src/read-answer.ts";
import {
  chunked,
  done,
  finish,
  lastChunk,
  plainAnswer,
  streamHead,
  text,
  usage,
} from "../src/upstream-bytes.ts";
import {
  endings,
  expectWhole,
  good,
  requestsArrived,
  standsStill,
  startProduct,
} from "./fixture.ts";

const leavings: readonly (readonly [string, (client: RawClient) => void])[] = [
  ["with FIN", (client) => client.close()],
  ["with RST", (client) => client.reset()],
  ["by closing its own side", (client) => client.halfClose()],
];

it.each(leavings)("F20 a client that leaves %s before the first byte", async (_, leave) => {
  const product = await startProduct(() => {});
  const client = await product.post({ stream: true });
  await requestsArrived(product);
  leave(client);
  await product.settled(1);
  await product.upstream.requests[0]?.closed;
  client.close();
  expect(await product.steps()).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
  // No answer was seen: the Step is charged its hold.
  const [attempt] = (await product.steps())[0]?.attempts ?? [];
  expect(await endings(product)).toMatchObject([
    { usageBasis: "estimated", usage: { completionTokens: attempt?.estimatedOutputTokens } },
  ]);
  await expectWhole(product);
});

it.each(leavings)(
  "F20 after a client leaves %s, its plain answer is read to the end and charged (S18)",
  async (_, leave) => {
    const go = Promise.withResolvers<void>();
    const product = await startProduct(async ({ send }) => {
      await go.promise;
      await send(plainAnswer("Hello"));
    });
    const client = await product.post({ stream: false });
    await requestsArrived(product);
    leave(client);
    await noticed();
    go.resolve();
    await product.settled(1);
    client.close();
    expect(await product.steps()).toMatchObject([
      { outcome: "cancelled", reason: "client_closed" },
    ]);
    expect(await endings(product)).toMatchObject([
      { usageBasis: "reported", usage: { promptTokens: 10, completionTokens: 5 } },
    ]);
    await expectWhole(product);
  },
);

it("F20 after a client leaves before the first byte, its stream is read on if answers are drained", async () => {
  const go = Promise.withResolvers<void>();
  const product = await startProduct(
    async ({ send }) => {
      await go.promise;
      await send(streamHead + chunked(text("Hello") + finish + usage(7, 9) + done) + lastChunk);
    },
    { gateway: { onDisconnect: "drain" } },
  );
  const client = await product.post({ stream: true });
  await requestsArrived(product);
  client.reset();
  await noticed();
  go.resolve();
  await product.settled(1);
  expect(await product.steps()).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
  expect(await endings(product)).toMatchObject([
    { usageBasis: "reported", usage: { promptTokens: 7, completionTokens: 9 } },
  ]);
  await expectWhole(product);
});

const words = ["One ", "two ", "three ", "four "];

it("F21 a client that leaves after any chunk pays for the output until then (S18)", async () => {
  for (let seen = 1; seen <= words.length; seen++)
    for (const [, leave] of leavings) {
      const product = await startProduct(async ({ send }) => {
        await send(streamHead);
        for (const word of words.slice(0, seen)) await send(chunked(text(word)));
      });
      const client = await product.post({ stream: true });
      await client.until(words[seen - 1] ?? "");
      leave(client);
      await product.settled(1);
      await product.upstream.requests[0]?.closed;
      client.close();
      const said = words.slice(0, seen).join("");
      const [step] = await product.steps();
      expect(step?.outcome).toBe("cancelled");
      const contents = await product.store.steps.contents(null, step?.id ?? "");
      expect(Buffer.from(contents?.reply ?? []).toString()).toContain(said);
      expect(await endings(product)).toMatchObject([
        { usageBasis: "estimated", usage: { completionTokens: Math.ceil(said.length / 3) } },
      ]);
      await expectWhole(product);
    }
});

it("F21 after a client leaves in the middle of a stream, the stream is drained to its end or limit", async () => {
  for (const ends of [true, false]) {
    const go = Promise.withResolvers<void>();
    const product = await startProduct(
      async ({ send }) => {
        await send(streamHead + chunked(text("Half")));
        await go.promise;
        if (ends) await send(chunked(text(" more") + finish + usage(7, 9) + done) + lastChunk);
      },
      { gateway: { onDisconnect: "drain", deadlines: { drain: "20s" } } },
    );
    const client = await product.post({ stream: true });
    await client.until("Half");
    client.reset();
    await noticed();
    go.resolve();
    if (!ends) product.clock.push(21_000);
    await product.settled(1);
    expect(await endings(product)).toMatchObject([
      ends
        ? {
            outcome: "cancelled",
            reason: "client_closed",
            usageBasis: "reported",
            usage: { completionTokens: 9 },
          }
        : { outcome: "cancelled", usageBasis: "estimated", usage: { completionTokens: 2 } },
    ]);
    await expectWhole(product);
  }
});

/** A reset arrives at once on the same machine; the server sees it when the event loop next polls. */
async function noticed(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await nextTurn();
}

it("F22 a client that leaves while the settlement is written counts as completely answered", async () => {
  let settling: RunningFault | undefined;
  const product = await startProduct(good, {
    wrap: (store) => {
      const faulty = faultyStore(store, {
        on: { verb: "settleStep", nth: 1, when: "before", action: "wait" },
      });
      settling = faulty.fault;
      return faulty.store;
    },
  });
  const client = await product.post({ stream: true });
  await client.until("there");
  await settling?.reached();
  expect(client.received()).not.toContain("[DONE]");
  expect(client.received()).not.toContain('"finish_reason":"stop"');
  client.reset();
  await noticed();
  settling?.release();
  await product.settled(1);
  await noticed();
  const ofRequests = product.events.filter((event) => "requestId" in event);
  expect(ofRequests.map(({ type }) => type)).toEqual([
    "request.received",
    "step.opened",
    "attempt.started",
    "request.answered",
    "attempt.ended",
    "step.settled",
  ]);
  expect(await product.steps()).toMatchObject([{ outcome: "completed" }]);
  await expectWhole(product);
});

it("F23 a silent stream is kept open by comments every 15 seconds", async () => {
  const product = await startProduct(async ({ send }) => {
    await send(streamHead + chunked(text("Half")));
  });
  const client = await product.post({ stream: true });
  await client.until("Half");
  for (let beat = 1; beat <= 3; beat++) {
    product.clock.push(15_000);
    while (client.received().split(": ping").length <= beat) await nextTurn();
  }
  client.reset();
  await product.settled(1);
  await expectWhole(product);
});

it("F23 a client that silently vanished is cut off when it reads nothing of its stream", async () => {
  const product = await startProduct(flood, { ...roomy, server: { limits: { writeStall: 150 } } });
  const client = await product.post({ stream: true });
  await client.until("xxxx");
  client.pause();
  await product.settled(1);
  expect(await product.steps()).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
  await product.upstream.requests[0]?.closed;
  client.close();
  await expectWhole(product);
});

it("F24 an upstream is paused while the client reads slowly, and continues when it reads again (S25)", async () => {
  const pieces = 500;
  let sent = 0;
  const product = await startProduct(async ({ send }) => {
    await send(streamHead);
    for (; sent < pieces; sent++) await send(chunked(text("x".repeat(65_536))));
    await send(chunked(finish + usage(1, 2) + done) + lastChunk);
  }, roomy);
  const client = await product.post({ stream: true });
  await client.until("xxxx");
  client.pause();
  await standsStill(() => sent);
  expect(sent).toBeLessThan(pieces * 0.8);
  expect((await product.steps())[0]?.outcome).toBeNull();
  client.resume();
  const { text: said, done: isDone } = readStream(readAnswer(await client.ended()));
  expect(said.length).toBe(pieces * 65_536);
  expect(isDone).toBe(true);
  await expectWhole(product);
}, 30_000);

/** An answer larger than all buffers on its way. */
const roomy = { gateway: { limits: { answerBytes: 67_108_864 } } };

/** Sends text until its connection is gone. */
async function flood({
  send,
  closed,
}: {
  readonly send: (bytes: string) => Promise<void>;
  readonly closed: Promise<void>;
}): Promise<void> {
  let isOpen = true;
  void closed.then(() => {
    isOpen = false;
  });
  await send(streamHead);
  while (isOpen) await send(chunked(text("x".repeat(65_536))));
}
