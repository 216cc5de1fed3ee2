import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import type { Product } from "../src/product.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";
import { expectWhole, product } from "./fixture.ts";

/** What another connection sees: only what is committed. */
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
  const of: Product = await product(async ({ send, body }) => {
    seen.push(committed(of));
    await send(goodAnswer(body));
  });
  await of.ask({ stream: true });
  await of.ask({ stream: false });
  expect(seen).toEqual([
    { outcome: "open", leaves: 1 },
    { outcome: "open", leaves: 3 },
  ]);
  await expectWhole(of);
});

it("U3 the settlement is committed before the client sees the answer's end", async () => {
  const of = await product(({ send, body }) => send(goodAnswer(body)));
  for (const [stream, end, leaves] of [
    [true, "[DONE]", 2],
    [true, '"finish_reason":"stop"', 4],
    [false, '"total_tokens"', 6],
  ] as const) {
    const client = await of.post({ stream });
    await client.until(end);
    expect(committed(of)).toEqual({ outcome: "completed", leaves });
    client.close();
  }
  await expectWhole(of);
});
