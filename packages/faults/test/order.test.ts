import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import type { Product } from "../src/product.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";
import { expectWhole, startProduct } from "./fixture.ts";

/** The committed rows, which another connection sees. */
function committed({ filename }: Product): { readonly outcome: unknown; readonly leaves: unknown } {
  const database = new DatabaseSync(filename, { readOnly: true });
  const step = database.prepare("SELECT outcome FROM steps ORDER BY sequence DESC").get();
  const leaves = database
    .prepare("SELECT count(*) AS n FROM leaves WHERE kind LIKE 'step.%'")
    .get();
  database.close();
  return { outcome: step?.["outcome"], leaves: leaves?.["n"] };
}

it("U2 the intent is committed before the first byte reaches the upstream", async () => {
  const seen: unknown[] = [];
  const product: Product = await startProduct(async ({ send, body }) => {
    seen.push(committed(product));
    await send(goodAnswer(body));
  });
  await product.ask({ stream: true });
  await product.ask({ stream: false });
  expect(seen).toEqual([
    { outcome: "open", leaves: 1 },
    { outcome: "open", leaves: 3 },
  ]);
  await expectWhole(product);
});

it("U3 the settlement is committed before the client sees the answer's end", async () => {
  const product = await startProduct(({ send, body }) => send(goodAnswer(body)));
  for (const [stream, end, leaves] of [
    [true, "[DONE]", 2],
    [true, '"finish_reason":"stop"', 4],
    [false, '"total_tokens"', 6],
  ] as const) {
    const client = await product.post({ stream });
    await client.until(end);
    expect(committed(product)).toEqual({ outcome: "completed", leaves });
    client.close();
  }
  await expectWhole(product);
});
