import { randomBytes } from "node:crypto";
import type { GatewayProcess } from "@tollgate/testing";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import { completes } from "../src/endpoints.ts";
import { openProcesses, type Processes } from "../src/processes.ts";
import { readAnswer } from "../src/read-answer.ts";
import { chunked, lastChunk } from "../src/upstream-bytes.ts";
import { wireOf } from "../src/upstream-wires.ts";
import { good } from "./fixture.ts";
import {
  expectInterrupted,
  expectNextWorks,
  leaseLapseMs,
  recoverAfterLapse,
  stopsInStreams,
} from "./process-fixture.ts";

vi.setConfig({ testTimeout: 60_000 });

type Script = Parameters<typeof openProcesses>[0];

/** Processes in one schema of PostgreSQL. */
async function onPostgres(script: Script = stopsInStreams): Promise<Processes> {
  const schema = `processes_${randomBytes(6).toString("hex")}`;
  const opened = await openProcesses(script, { url: inject("postgresUrl"), schema });
  onTestFinished(() => opened.close());
  return opened;
}

it("F25 F26 F28 on PostgreSQL, a peer settles the Steps of killed processes once, even if it is killed meanwhile", async () => {
  const processes = await onPostgres();
  const [killed, opening] = await Promise.all([
    processes.start(),
    processes.start({ waitsAt: { verb: "openStep", nth: 1, when: "after" } }),
  ]);
  const clients = await Promise.all([1, 2, 3].map(() => processes.post(killed, { stream: true })));
  for (const client of clients) await client.until("Half of it");
  await processes.post(opening);
  await opening.reached("store");
  const sent = processes.upstream.requests.length;
  await Promise.all([killed.kill(), opening.kill()]);
  expect(sent).toBe(3);
  expect(await processes.openSteps()).toBe(4);

  const halfway = await processes.start({
    waitsAt: { verb: "settleStep", nth: 2, when: "before" },
  });
  await halfway.command("push", leaseLapseMs);
  void halfway.command("recover").catch(() => {});
  await halfway.reached("store");
  await halfway.kill();

  const gateways = await Promise.all([processes.start(), processes.start()]);
  await Promise.all(gateways.map(recoverAfterLapse));
  const steps = await processes.steps();
  expect(steps).toHaveLength(4);
  for (const step of steps) expectInterrupted(step);
  expect(await processes.problems()).toEqual([]);
  const [next] = gateways;
  if (next) await expectNextWorks(processes, next);
});

it("F27 on PostgreSQL, a process killed between the settlement and the answer has settled everything", async () => {
  const processes = await onPostgres(good);
  const killed = await processes.start({ waitsAt: { verb: "settleStep", nth: 1, when: "after" } });
  const client = await processes.post(killed, { stream: true });
  await killed.reached("store");
  await killed.kill();
  expect(await client.ended()).not.toMatch(completes);
  expect(await processes.steps()).toMatchObject([{ outcome: "completed" }]);
  expect(await processes.problems()).toEqual([]);
});

it("F39 on PostgreSQL, a process whose clock is two minutes ahead recovers no live peer", async () => {
  const goes = Promise.withResolvers<void>();
  const processes = await onPostgres(async (exchange) => {
    await stopsInStreams(exchange);
    await goes.promise;
    await exchange.send(chunked(wireOf(exchange).ending(10, 5)) + lastChunk);
  });
  const punctual = await processes.start({ machineClockAhead: 0 });
  const client = await processes.post(punctual, { stream: true });
  await client.until("Half of it");
  const hasty = await processes.start({ machineClockAhead: 120_000 });
  expect(await hasty.command("recover")).toBe(0);
  goes.resolve();
  expect(await client.ended()).toMatch(completes);
  expect(await processes.steps()).toMatchObject([{ outcome: "completed" }]);
  expect(await processes.problems()).toEqual([]);
});

it("F40 four processes with 64 clients admit exactly as many requests as one hard budget allows (S16)", async () => {
  const fits = 37;
  const held = Promise.withResolvers<void>();
  const processes = await onPostgres(async (exchange) => {
    await held.promise;
    await good(exchange);
  });
  const four = await Promise.all([1, 2, 3, 4].map(() => processes.start({ requests: fits })));
  let refused = 0;
  const answers = Array.from({ length: 64 }, async (_, client) => {
    const answer = await askAt(processes, four[client % four.length]);
    if (answer.status === 429) refused++;
    return answer.status;
  });
  // The provider holds every request it received: the refused ones have nothing left to wait for.
  while (refused < 64 - fits || processes.upstream.requests.length < fits)
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect(processes.upstream.requests).toHaveLength(fits);
  held.resolve();
  const statuses = await Promise.all(answers);
  expect(statuses.filter((status) => status === 200)).toHaveLength(fits);
  expect(statuses.filter((status) => status === 429)).toHaveLength(64 - fits);
  expect(processes.upstream.requests).toHaveLength(fits);
  expect(await processes.problems()).toEqual([]);
  const few = (await processes.dump()).counters.find(({ budgetId }) => budgetId === "few");
  expect(few).toMatchObject({ settled: fits, held: 0 });
});

async function askAt(processes: Processes, process: GatewayProcess | undefined) {
  if (process === undefined) throw new Error("unknown process");
  const client = await processes.post(process);
  return readAnswer(await client.ended());
}
