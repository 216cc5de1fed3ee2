import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { ServerResponse } from "node:http";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { faultyStore, type RawClient, type RunningFault } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { conversations, embeddings, type Route, routes } from "../src/endpoints.ts";
import { readAnswer } from "../src/read-answer.ts";
import { chunked, lastChunk, streamHead } from "../src/upstream-bytes.ts";
import type { UpstreamWire } from "../src/upstream-wires.ts";
import {
  endings,
  expectWhole,
  good,
  requestsArrived,
  type Script,
  startProduct,
} from "./fixture.ts";

const leavings: readonly (readonly [string, (client: RawClient) => void])[] = [
  ["with FIN", (client) => client.close()],
  ["with RST", (client) => client.reset()],
  ["by closing its own side", (client) => client.halfClose()],
];

/** A complete streamed answer. */
const streamOf = ({ opening, text, ending }: UpstreamWire): string =>
  streamHead + chunked(opening(7, 1) + text("Hello") + ending(7, 9)) + lastChunk;

const everyLeaving = (of: readonly Route[]) =>
  of.flatMap((route) => leavings.map(([how, leave]) => ({ ...route, how, leave })));

it.each(everyLeaving(conversations))(
  "F20 a client that leaves $how before the first byte: $name",
  async ({ leave, ...route }) => {
    const product = await startProduct(() => {}, { route });
    const client = await product.post({ stream: true });
    await requestsArrived(product);
    leave(client);
    await product.settled(1);
    await product.upstream.requests[0]?.closed;
    client.close();
    expect(await product.steps()).toMatchObject([
      { outcome: "cancelled", reason: "client_closed" },
    ]);
    // No answer was seen: the Step is charged its hold.
    const [attempt] = (await product.steps())[0]?.attempts ?? [];
    expect(await endings(product)).toMatchObject([
      { usageBasis: "estimated", usage: { completionTokens: attempt?.estimatedOutputTokens } },
    ]);
    await expectWhole(product);
  },
);

it.each(everyLeaving(routes))(
  "F20 after a client leaves $how, its plain answer is read to the end and charged (S18): $name",
  async ({ leave, ...route }) => {
    const isEmbedding = route.endpoint === embeddings;
    const answers = answersOfServer();
    const go = Promise.withResolvers<void>();
    const product = await startProduct(
      async ({ send }) => {
        await go.promise;
        await send(route.plain("Hello", 10, 5));
      },
      { route },
    );
    const client = await product.post();
    await requestsArrived(product);
    leave(client);
    await closed(answers.at(-1));
    go.resolve();
    await product.settled(1);
    client.close();
    expect(await product.steps()).toMatchObject([
      { outcome: "cancelled", reason: "client_closed" },
    ]);
    expect(await endings(product)).toMatchObject([
      {
        usageBasis: "reported",
        usage: { promptTokens: 10, completionTokens: isEmbedding ? 0 : 5 },
      },
    ]);
    await expectWhole(product);
  },
);

it.each(conversations)(
  "F20 after a client leaves before the first byte, its stream is read on if answers are drained: $name",
  async (route) => {
    const answers = answersOfServer();
    const go = Promise.withResolvers<void>();
    const product = await startProduct(
      async ({ send }) => {
        await go.promise;
        await send(streamOf(route.wire));
      },
      { route, gateway: { onDisconnect: "drain" } },
    );
    const client = await product.post({ stream: true });
    await requestsArrived(product);
    client.reset();
    await closed(answers.at(-1));
    go.resolve();
    await product.settled(1);
    expect(await product.steps()).toMatchObject([
      { outcome: "cancelled", reason: "client_closed" },
    ]);
    expect(await endings(product)).toMatchObject([
      { usageBasis: "reported", usage: { promptTokens: 7, completionTokens: 9 } },
    ]);
    await expectWhole(product);
  },
);

const words = ["One ", "two ", "three ", "four "];

it.each(everyLeaving(conversations))(
  "F21 a client that leaves $how after any chunk pays for the output until then (S18): $name",
  async ({ leave, ...route }) => {
    const { opening, text } = route.wire;
    for (let seen = 1; seen <= words.length; seen++) {
      const product = await startProduct(
        async ({ send }) => {
          await send(streamHead + chunked(opening(10, 1)));
          for (const word of words.slice(0, seen)) await send(chunked(text(word)));
        },
        { route },
      );
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
  },
);

it.each(conversations)(
  "F21 after a client leaves in the middle of a stream, the stream is drained to its end or limit: $name",
  async (route) => {
    const { opening, text, ending } = route.wire;
    const answers = answersOfServer();
    for (const ends of [true, false]) {
      const go = Promise.withResolvers<void>();
      const product = await startProduct(
        async ({ send }) => {
          await send(streamHead + chunked(opening(7, 1) + text("Half")));
          await go.promise;
          if (ends) await send(chunked(text(" more") + ending(7, 9)) + lastChunk);
        },
        { route, gateway: { onDisconnect: "drain", deadlines: { drain: "20s" } } },
      );
      const client = await product.post({ stream: true });
      await client.until("Half");
      client.reset();
      await closed(answers.at(-1));
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
  },
);

it.each(routes)(
  "F22 a client that leaves while the settlement is written counts as completely answered: $name",
  async (route) => {
    const isEmbedding = route.endpoint === embeddings;
    const answers = answersOfServer();
    let settling: RunningFault | undefined;
    const product = await startProduct(good, {
      route,
      wrap: (store) => {
        const faulty = faultyStore(store, {
          on: { verb: "settleStep", nth: 1, when: "before", action: "wait" },
        });
        settling = faulty.fault;
        return faulty.store;
      },
    });
    const client = await product.post(isEmbedding ? {} : { stream: true });
    if (!isEmbedding) await client.until("there");
    await settling?.reached();
    expect(client.received()).not.toMatch(route.endpoint.completes);
    client.reset();
    await closed(answers.at(-1));
    settling?.release();
    await product.settled(1);
    expect(await product.steps()).toMatchObject([{ outcome: "completed" }]);
    // Answers another request, so whatever else the first one reports is there.
    await expectWhole(product);
    const ofRequests = product.events.filter((event) => "requestId" in event);
    const [first] = ofRequests;
    const ofFirst = ofRequests.filter(({ requestId }) => requestId === first?.requestId);
    expect(ofFirst.map(({ type }) => type)).toEqual([
      "request.received",
      "step.opened",
      "attempt.started",
      ...(isEmbedding ? [] : ["request.answered"]),
      "attempt.ended",
      ...(isEmbedding ? ["request.answered"] : []),
      "step.settled",
    ]);
  },
);

it.each(conversations)(
  "F23 a silent stream is kept open by comments or events every 15 seconds: $name",
  async (route) => {
    const { opening, text } = route.wire;
    const { ping } = route.endpoint;
    const product = await startProduct(
      async ({ send }) => {
        await send(streamHead + chunked(opening(10, 1) + text("Half")));
      },
      { route },
    );
    const client = await product.post({ stream: true });
    await client.until("Half");
    for (let beat = 1; beat <= 3; beat++) {
      product.clock.push(15_000);
      while (client.received().split(ping).length <= beat) await nextTurn();
    }
    client.reset();
    await product.settled(1);
    await expectWhole(product);
  },
);

it.each(conversations)(
  "F23 a client that silently vanished is cut off when it reads nothing of its stream: $name",
  async (route) => {
    const options = { ...roomy, route, server: { limits: { writeStall: 150 } } };
    const product = await startProduct(flood(route.wire), options);
    const client = await product.post({ stream: true });
    await client.until("xxxx");
    client.pause();
    await product.settled(1);
    expect(await product.steps()).toMatchObject([
      { outcome: "cancelled", reason: "client_closed" },
    ]);
    await product.upstream.requests[0]?.closed;
    client.close();
    await expectWhole(product);
  },
);

it.each(conversations)(
  "F24 an upstream is paused while the client reads slowly, and continues when it reads again (S25): $name",
  async (route) => {
    const { opening, text, ending } = route.wire;
    const answers = answersOfServer();
    const connections = published("undici:client:connected", "socket", Socket);
    const piece = "x".repeat(65_536);
    let sent = 0;
    let isEnough = false;
    // The rest is sent once the client reads no more: while it reads, the system's buffers grow.
    const paused = Promise.withResolvers<void>();
    const product = await startProduct(
      async ({ send }) => {
        await send(streamHead + chunked(opening(1, 1)));
        for (; !isEnough; sent++) {
          await send(chunked(text(piece)));
          await paused.promise;
        }
        await send(chunked(ending(1, 2)) + lastChunk);
      },
      { ...roomy, route },
    );
    const client = await product.post({ stream: true });
    await client.until("xxxx");
    client.pause();
    paused.resolve();
    const bytes = await bytesReadWhileStuck(answers.at(-1), connections.at(-1));
    expect(bytes).toBeLessThan(turnsStuck * piece.length * 0.2);
    expect((await product.steps())[0]?.outcome).toBeNull();
    isEnough = true;
    client.resume();
    const { body } = readAnswer(await client.ended());
    const { text: said, isComplete, isEnded } = route.endpoint.read(body);
    expect(said.length).toBe(sent * piece.length);
    expect({ isComplete, isEnded }).toEqual({ isComplete: true, isEnded: true });
    await expectWhole(product);
  },
  30_000,
);

/** Event loop turns in which an upstream that isn't paused sends much more than every buffer of the gateway holds. */
const turnsStuck = 100;

/**
 * Waits until the system takes no more of an answer. Returns how many bytes the gateway still reads of the upstream. Counts
 * turns, not time: the upstream, the gateway and the client share the event loop, so each could have gone on in each turn.
 */
async function bytesReadWhileStuck(
  answer: ServerResponse | undefined,
  upstream: Socket | undefined,
): Promise<number> {
  let turns = 0;
  let before = 0;
  const begin = (): void => {
    turns = 0;
    before = upstream?.bytesRead ?? 0;
  };
  begin();
  answer?.on("drain", begin);
  while (turns < turnsStuck) {
    await nextTurn();
    if (answer?.writableNeedDrain) turns++;
    else begin();
  }
  return (upstream?.bytesRead ?? 0) - before;
}

/** The answers of the server to requests of this test, in order. */
const answersOfServer = (): readonly ServerResponse[] =>
  published("http.server.request.start", "response", ServerResponse);

/** Resolves when the connection of an answer is closed: the server has noticed that its client left. */
function closed(answer: ServerResponse | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (answer?.closed) resolve();
    else answer?.once("close", resolve);
  });
}

/** Collects the values that Node and undici publish on a diagnostics channel until the test ends. */
function published<One>(
  name: string,
  member: string,
  kind: new (...of: never[]) => One,
): readonly One[] {
  const values: One[] = [];
  const note = (message: unknown): void => {
    const value: unknown = Reflect.get(Object(message), member);
    if (value instanceof kind) values.push(value);
  };
  subscribe(name, note);
  onTestFinished(() => void unsubscribe(name, note));
  return values;
}

/** An answer larger than all buffers on its way. */
const roomy = { gateway: { limits: { answerBytes: 67_108_864 } } };

/** An upstream that sends text until its connection is gone. */
const flood =
  ({ opening, text }: UpstreamWire): Script =>
  async ({ send, closed }) => {
    let isOpen = true;
    void closed.then(() => {
      isOpen = false;
    });
    await send(streamHead + chunked(opening(10, 1)));
    while (isOpen) await send(chunked(text("x".repeat(65_536))));
  };
