import { expect, it } from "vitest";
import type { Processes } from "../src/processes.ts";
import { readAnswer } from "../src/read-answer.ts";
import { openDatabase } from "../src/stores/database-location.ts";
import { good } from "./fixture.ts";
import {
  expectInterrupted,
  expectNextWorks,
  leaseLapseMs,
  recoverAfterLapse,
  startProcesses,
} from "./process-fixture.ts";

it("F28 recovery that is killed, and two recoveries at once, settle each Step once", async () => {
  const processes = await startProcesses();
  const killed = await processes.start();
  const clients = await Promise.all(
    [1, 2, 3, 4].map(() => processes.post(killed, { stream: true })),
  );
  for (const client of clients) await client.until("Half of it");
  await killed.kill();

  const halfway = await processes.start({
    waitsAt: { verb: "settleStep", nth: 2, when: "before" },
  });
  await halfway.command("push", leaseLapseMs);
  void halfway.command("recover").catch(() => {});
  await halfway.reached("store");
  await halfway.kill();

  const gateways = [await processes.start(), await processes.start()];
  await Promise.all(gateways.map(recoverAfterLapse));
  // The leaves show that each was settled once: the checks count them.
  for (const step of await processes.steps()) expectInterrupted(step);
  expect(await processes.problems()).toEqual([]);
  const [next] = gateways;
  if (next) await expectNextWorks(processes, next);
});

it("F26 two processes recover each other's Steps, each once", async () => {
  const processes = await startProcesses();
  const first = await processes.start();
  await (await processes.post(first, { stream: true })).until("Half of it");
  await first.kill();
  const second = await processes.start();
  await recoverAfterLapse(second);
  await (await processes.post(second, { stream: true })).until("Half of it");
  await second.kill();
  const third = await processes.start();
  await third.command("push", 2 * leaseLapseMs);
  await third.command("recover");
  const steps = await processes.steps();
  expect(steps).toHaveLength(2);
  for (const step of steps) expectInterrupted(step);
  await expectNextWorks(processes, third);
});

it("F40 two processes on one file together admit exactly as many requests as a hard budget allows", async () => {
  const held = Promise.withResolvers<void>();
  const processes = await startProcesses(async (exchange) => {
    await held.promise;
    await good(exchange);
  });
  const [first, second] = [
    await processes.start({ requests: 50 }),
    await processes.start({ requests: 50 }),
  ];
  const answers = Array.from({ length: 200 }, async (_, at) => {
    const client = await processes.post(at % 2 === 0 ? first : second);
    return readAnswer(await client.ended()).status;
  });
  let refused = 0;
  for (const answer of answers) void answer.then((status) => void (status === 429 && refused++));
  while (refused < 150 || processes.upstream.requests.length < 50)
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect(processes.upstream.requests).toHaveLength(50);
  held.resolve();
  const statuses = await Promise.all(answers);
  expect(statuses.filter((status) => status === 200)).toHaveLength(50);
  expect(statuses.filter((status) => status === 429)).toHaveLength(150);
  expect(processes.upstream.requests).toHaveLength(50);
  expect(await processes.problems()).toEqual([]);
  const few = (await processes.dump()).counters.find(({ budgetId }) => budgetId === "few");
  expect(few).toMatchObject({ settled: 50, held: 0 });
});

it("P2 the first of two suspended processes to wake waits one more round before it recovers the other's stream (H11)", async () => {
  const processes = await startProcesses();
  const [running, gateway] = [await processes.start(), await processes.start()];
  const client = await processes.post(running, { stream: true });
  await client.until("Half of it");
  running.pause();
  await gateway.command("round", leaseLapseMs);
  // The peer's next round begins when the other has renewed its lease, however slow this machine is.
  gateway.pause();
  expect((await processes.steps())[0]?.outcome).toBeNull();
  running.resume();
  await running.command("push", leaseLapseMs);
  await leasedPast(processes, Date.now() + leaseLapseMs);
  gateway.resume();
  await gateway.command("round", 5_000);
  expect(await gateway.command("recover")).toBe(0);
  expect((await processes.steps())[0]?.outcome).toBeNull();
});

/** Resolves when the leases of all open Steps last longer than until then. */
async function leasedPast(processes: Processes, at: number): Promise<void> {
  const store = openDatabase(processes.place);
  const query = { at, clock: "gateway", after: null, limit: 1 } as const;
  while ((await store.lapsedSteps(query)).steps.length > 0);
  await store.close();
}
