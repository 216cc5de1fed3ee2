/**
 * Measures a governed call as its conversation grows: `gateway.fetch`, a scripted provider and the memory store. Each
 * call sends the whole history and continues its Session.
 */
import { createTestGateway } from "@tollgate/testing";

const lengths = [10, 100, 1_000] as const;
const scale = Number(process.argv[2] ?? 1);
const conversations = Math.ceil(60 * scale);
/** Until then, the process compiles: the first length would take longer than the next. */
const warmUpConversations = Math.ceil(600 * scale);
const measuredTurns = 5;
const say = "All the king's horses and all the king's men could not put it together again. ".repeat(
  2,
);

const { gateway, provider, chat } = await createTestGateway();
for (let round = 0; round < warmUpConversations; round += 1) await converse(`warm-${round}`, 10);
const figures: Record<string, number> = {};
for (const length of lengths) {
  const times: number[] = [];
  // The first third warms up.
  for (let round = 0; round < conversations; round += 1) {
    const taken = await converse(`${length}-${round}`, length);
    if (round >= conversations / 3) times.push(...taken);
  }
  times.sort((a, b) => a - b);
  figures[`${length} messages p50 µs`] = times[Math.floor(times.length / 2)] ?? Number.NaN;
}
await gateway.close();
process.send?.(figures);
process.disconnect?.();

/** Sends a history of this length, then some turns on top of it. Returns their times in microseconds. */
async function converse(name: string, length: number): Promise<readonly number[]> {
  const messages: { readonly role: string; readonly content: string }[] = [];
  for (let at = 0; messages.length < length - 1; at += 1) {
    messages.push({ role: "user", content: `${name}, ${at}: ${say}` });
    messages.push({ role: "assistant", content: `${name}, answer ${at}: ${say}` });
  }
  const times: number[] = [];
  for (let turn = 0; turn <= measuredTurns; turn += 1) {
    messages.push({ role: "user", content: `${name}, turn ${turn}?` });
    provider.reply(`${name}, reply ${turn}`);
    const request = chat({ messages });
    const started = performance.now();
    const answer = await gateway.fetch(request);
    await answer.text();
    if (turn > 0) times.push((performance.now() - started) * 1_000);
    if (answer.status !== 200) throw new Error(`Unexpected status: ${answer.status}.`);
    messages.push({ role: "assistant", content: `${name}, reply ${turn}` });
  }
  return times;
}
