import { chatWith, createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";
import { garbageCollector } from "../src/collect-garbage.ts";
import type { Product } from "../src/product.ts";
import { openHead, text } from "../src/upstream-bytes.ts";
import { chatWire } from "../src/upstream-wires.ts";
import { type Script, standsStill, startProduct } from "./fixture.ts";

const collect = garbageCollector();

/** The memory of this process without garbage. */
function heldBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const events = 50_000;
const maxBytesPerEvent = 20;

it("keeps little more than the text of a long answer while a client reads it slowly", async () => {
  const { gateway, provider, chat } = await createTestGateway();
  provider.reply({ text: Array.from({ length: events }, (_, at) => `${at} `.slice(-5)) });
  const { body } = await gateway.answer(chat({ stream: true }));
  if (typeof body === "string") throw new Error("not a stream");
  const over = Promise.withResolvers<void>();
  const before = heldBytes();
  let writes = 0;
  let grown = 0;
  body.start({
    async write() {
      if (++writes === events - 10) grown = heldBytes() - before;
    },
    end: over.resolve,
    fail: over.reject,
  });
  await over.promise;
  expect(writes).toBeGreaterThan(events - 10);
  expect(grown).toBeLessThan(events * maxBytesPerEvent);
});

const readers = 10;
const maxBytesPerReader = 400_000;

it("keeps little of each answer that its client stopped reading", async () => {
  const piece = Buffer.from(text("word ").repeat(600));
  let sent = 0;
  const endless: Script = async ({ send, closed }) => {
    let isOpen = true;
    void closed.then(() => {
      isOpen = false;
    });
    await send(openHead + text("word "));
    for (; isOpen; sent++) await send(piece);
  };
  const product = await startProduct(endless, { gateway: { deadlines: { drain: 50 } } });
  const stall = async (): Promise<StreamBody> => {
    const body = await streamOf(product);
    body.start({ write: () => new Promise(() => {}), end() {}, fail() {} });
    return body;
  };
  const first = await stall();
  await standsStill(() => sent);
  const before = heldBytes();
  const rest = await Promise.all(Array.from({ length: readers }, stall));
  await standsStill(() => sent);
  expect(heldBytes() - before).toBeLessThan(readers * maxBytesPerReader);
  for (const body of [first, ...rest]) body.leave();
  await product.settled(readers + 1);
});

it("frees the room of a long plain answer that nobody reads", async () => {
  const { gateway, provider, chat } = await createTestGateway();
  provider.reply("x".repeat(100_000));
  const ask = async (): Promise<number> => (await gateway.fetch(chat())).status;
  expect(await ask()).toBe(200);
  expect(gateway.status().admitted).toBe(1);
  while (gateway.status().admitted > 0) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
});

type StreamBody = Exclude<Awaited<ReturnType<Product["gateway"]["answer"]>>["body"], string>;

/** The answer to a request for a stream. */
async function streamOf({ gateway, secret }: Product): Promise<StreamBody> {
  const { body } = await gateway.answer(chatWith(secret)({ model: chatWire.model, stream: true }));
  if (typeof body === "string") throw new Error("not a stream");
  return body;
}
