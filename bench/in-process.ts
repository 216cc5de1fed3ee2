/** Measures a governed call without a network: `gateway.fetch`, a scripted provider and the memory store. */
import { createTestGateway } from "@tollgate/testing";

const scale = Number(process.argv[2] ?? 1);
const calls = Math.ceil(10_000 * scale);
/** Not scaled: a process that still compiles isn't warm. */
const warmUp = 30_000;

const { gateway, provider, chat } = await createTestGateway();
const times: number[] = [];
for (let call = 0; call < warmUp + calls; call += 1) {
  provider.reply("All the king's horses and all the king's men.");
  const request = chat({ messages: [{ role: "user", content: `Question ${call}?` }] });
  const started = performance.now();
  const answer = await gateway.fetch(request);
  await answer.text();
  if (call >= warmUp) times.push((performance.now() - started) * 1_000);
  if (answer.status !== 200) throw new Error(`Unexpected status: ${answer.status}.`);
}
await gateway.close();
times.sort((a, b) => a - b);
process.send?.({
  "p50 µs": times[Math.floor(calls * 0.5)],
  "p99 µs": times[Math.floor(calls * 0.99)],
});
process.disconnect?.();
