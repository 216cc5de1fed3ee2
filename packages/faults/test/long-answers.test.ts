import { createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";
import { garbageCollector } from "../src/collect-garbage.ts";

const events = 50_000;
const maxBytes = 6_000_000;

it("leaks no memory while a client reads a long answer slowly", async () => {
  const { gateway, provider, chat } = await createTestGateway();
  provider.reply({ text: Array.from({ length: events }, () => "x") });
  const { body } = await gateway.answer(chat({ stream: true }));
  if (typeof body === "string") throw new Error("not a stream");
  const collect = garbageCollector();
  const heap = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const over = Promise.withResolvers<void>();
  const before = heap();
  let writes = 0;
  let grown = 0;
  body.start({
    async write() {
      if (++writes === events - 10) grown = heap() - before;
    },
    end: over.resolve,
    fail: over.reject,
  });
  await over.promise;
  expect(writes).toBeGreaterThan(events - 10);
  expect(grown).toBeLessThan(maxBytes);
});
