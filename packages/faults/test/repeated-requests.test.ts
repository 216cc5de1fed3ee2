import { randomBytes } from "node:crypto";
import type { GatewayProcess } from "@tollgate/testing";
import { expect, inject, it, vi } from "vitest";
import type { Processes } from "../src/processes.ts";
import { seededRandom } from "../src/random.ts";
import { readAnswer } from "../src/read-answer.ts";
import { repeatRequests } from "../src/repeats/repeat-requests.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";
import { recoverAfterLapse, startProcesses } from "./process-fixture.ts";

vi.setConfig({ testTimeout: 60_000 });

const plan = { requests: 40, concurrency: 8, killEveryMs: [50, 150] } as const;

async function ask(processes: Processes, to: GatewayProcess, stream: boolean) {
  const client = await processes.post(to, { stream }, ["idempotency-key: order-17"]);
  return readAnswer(await client.ended());
}

const codeOf = (body: string): unknown => JSON.parse(body).error.code;

it("F43 of many equal requests at once, one calls the provider, and later ones get its answer", async () => {
  const released = Promise.withResolvers<void>();
  const processes = await startProcesses(async ({ send, body }, calls) => {
    // If a repeat called the provider, too, no request would get a conflict.
    if (calls > 1) released.resolve();
    await released.promise;
    await send(goodAnswer(body));
  });
  const pair = await Promise.all([processes.start(), processes.start()]);
  const asked = Array.from({ length: 16 }, (_, at) => {
    const to = pair[at % 2];
    if (to === undefined) throw new Error("no process");
    return ask(processes, to, true);
  });
  const conflict = await Promise.race(asked);
  expect([conflict.status, codeOf(conflict.body)]).toEqual([409, "idempotency_in_progress"]);
  expect(Number(conflict.headers["retry-after-ms"])).toBeGreaterThanOrEqual(500);
  released.resolve();
  const answers = await Promise.all(asked);
  const [first] = answers.filter(({ status }) => status === 200);
  for (const to of pair) expect((await ask(processes, to, true)).body).toBe(first?.body);
  expect(processes.upstream.requests).toHaveLength(1);
  expect(await processes.problems()).toEqual([]);
});

it("F43 a repeat gets the answer of a process that was killed between the settlement and the answer", async () => {
  const processes = await startProcesses(({ send, body }) => send(goodAnswer(body)));
  const killed = await processes.start({ waitsAt: { verb: "settleStep", nth: 1, when: "after" } });
  const client = await processes.post(killed, { stream: true }, ["idempotency-key: order-17"]);
  await killed.reached("store");
  await killed.kill();
  expect(await client.ended()).not.toContain("[DONE]");
  const next = await processes.start();
  const repeat = await ask(processes, next, true);
  expect(repeat.headers["idempotency-replayed"]).toBe("true");
  expect(repeat.body.endsWith("data: [DONE]\n\n")).toBe(true);
  expect(processes.upstream.requests).toHaveLength(1);
});

it("F43 a repeat never calls again after its process was killed, however long that was ago", async () => {
  const processes = await startProcesses(({ send, body }) => send(goodAnswer(body)));
  const killed = await processes.start({ waitsAt: { verb: "openStep", nth: 1, when: "after" } });
  await processes.post(killed, { stream: true }, ["idempotency-key: order-17"]);
  await killed.reached("store");
  await killed.kill();
  const next = await processes.start();
  expect(codeOf((await ask(processes, next, true)).body)).toBe("idempotency_in_progress");
  await recoverAfterLapse(next);
  expect(codeOf((await ask(processes, next, true)).body)).toBe("idempotency_interrupted");
  expect(processes.upstream.requests).toHaveLength(0);
});

it.each(["a file", "PostgreSQL"])(
  "F43 on %s, requests that are repeated while processes are killed are called once and answered equally",
  async (where) => {
    const schema = `repeats_${randomBytes(6).toString("hex")}`;
    const place = where === "a file" ? undefined : { url: inject("postgresUrl"), schema };
    const report = await repeatRequests({ ...plan, random: seededRandom(43) }, place);
    expect(report.problems).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
    expect(report.replays).toBeGreaterThan(0);
  },
);
