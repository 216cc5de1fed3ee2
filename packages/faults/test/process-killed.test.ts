import type { StoreFault } from "@tollgate/testing";
import { expect, it } from "vitest";
import { completes } from "../src/endpoints.ts";
import type { Processes } from "../src/processes.ts";
import { readAnswer } from "../src/read-answer.ts";
import { openDatabase } from "../src/stores/database-location.ts";
import { asksForStream } from "../src/upstream-bytes.ts";
import { good } from "./fixture.ts";
import {
  expectInterrupted,
  expectNextWorks,
  leaseLapseMs,
  recoverAfterLapse,
  startProcesses,
  stopsInStreams,
} from "./process-fixture.ts";

it("F25 a process killed between the intent and the request: the next start settles the Step", async () => {
  const processes = await startProcesses();
  const killed = await processes.start({ waitsAt: { verb: "openStep", nth: 1, when: "after" } });
  await processes.post(killed);
  await killed.reached("store");
  await killed.kill();
  expect(processes.upstream.requests).toHaveLength(0);
  expect(await processes.steps()).toMatchObject([{ outcome: null }]);

  const next = await processes.start();
  await recoverAfterLapse(next);
  const [step] = await processes.steps();
  expectInterrupted(step);
  await expectNextWorks(processes, next);
});

it("F26 a process killed in the middle of a stream: its Step is interrupted once its lease lapses, and nothing else changes", async () => {
  const processes = await startProcesses();
  const first = await processes.start();
  const whole = await processes.post(first);
  expect(readAnswer(await whole.ended()).status).toBe(200);
  const client = await processes.post(first, { stream: true });
  await client.until("Half of it");
  await first.kill();
  const before = await processes.dump();

  const next = await processes.start();
  expect(await next.command("recover")).toBe(0);
  expect((await processes.steps())[1]?.outcome).toBeNull();
  await recoverAfterLapse(next);
  const after = await processes.dump();
  const [completed, interrupted] = after.steps.toReversed();
  expect(completed).toEqual(before.steps.at(-1));
  expectInterrupted(interrupted);
  expect(after.leaves.slice(0, before.leaves.length)).toEqual(before.leaves);
  expect(after.leaves).toHaveLength(before.leaves.length + 1);
  expect(after.sessions.map(({ parts }) => parts)).toEqual(
    before.sessions.map(({ parts }) => parts),
  );
  await expectNextWorks(processes, next);
});

it("F26 a Step is charged for the output that its killed process last recorded", async () => {
  const processes = await startProcesses();
  const killed = await processes.start();
  const client = await processes.post(killed, { stream: true });
  await client.until("Half of it");
  // One lease renewal records the progress of the open Steps.
  await killed.command("push", 5_000);
  await progressed(processes);
  await killed.kill();
  const next = await processes.start();
  await next.command("push", 5_000 + leaseLapseMs);
  await next.command("recover");
  const [step] = await processes.steps();
  expectInterrupted(step);
  expect(step?.attempts[0]?.end?.usage.completionTokens).toBe(Math.ceil("Half of it".length / 3));
  expect(await processes.problems()).toEqual([]);
});

/** Resolves when the file contains some output of its open Step. */
async function progressed(processes: Processes): Promise<void> {
  const store = openDatabase(processes.place);
  const far = Date.now() + 1_000_000;
  for (;;) {
    const query = { at: far, clock: "gateway", after: null, limit: 1 } as const;
    if ((await store.lapsedSteps(query)).steps[0]?.outputTokens) break;
  }
  await store.close();
}

it("F26 a peer on the same file recovers the Steps of a killed process once, without a command", async () => {
  const processes = await startProcesses();
  const [killed, gateway] = [await processes.start(), await processes.start()];
  const clients = await Promise.all([1, 2, 3].map(() => processes.post(killed, { stream: true })));
  const mine = await processes.post(gateway, { stream: true });
  for (const client of [...clients, mine]) await client.until("Half of it");
  await killed.kill();
  // The peer's own rounds recover, without a command. It missed renewals itself, so its first round only renews.
  await gateway.command("push", leaseLapseMs);
  await processes.steps();
  await gateway.command("push", 5_000);
  await untilSettled(processes, 3);
  expect(await gateway.command("recover")).toBe(0);
  const steps = await processes.steps();
  expect(steps.filter(({ outcome }) => outcome === "interrupted")).toHaveLength(3);
  expect(steps.filter(({ outcome }) => outcome === null)).toHaveLength(1);
  mine.reset();
  await untilSettled(processes, 4);
  await expectNextWorks(processes, gateway);
});

async function untilSettled(processes: Processes, count: number): Promise<void> {
  while ((await processes.steps()).filter(({ outcome }) => outcome !== null).length < count);
}

type Stop = readonly [string, StoreFault["verb"], StoreFault["when"], object];
const stops: readonly Stop[] = [
  ["before a Step opens", "openStep", "before", { steps: 0 }],
  ["after a Step opened", "openStep", "after", { steps: 1 }],
  ["before a Step is settled", "settleStep", "before", { steps: 1 }],
  ["between the settlement and the answer", "settleStep", "after", { steps: 1 }],
];

it.each(stops)(
  "F27 a process killed %s: the change is whole or absent",
  async (_, verb, when, expected) => {
    const processes = await startProcesses(good);
    const killed = await processes.start({ waitsAt: { verb, nth: 1, when } });
    const client = await processes.post(killed, { stream: true });
    await killed.reached("store");
    await killed.kill();
    expect(await client.ended()).not.toMatch(completes);
    expect({ steps: (await processes.steps()).length }).toEqual(expected);

    const next = await processes.start();
    await recoverAfterLapse(next);
    const [step] = await processes.steps();
    if (verb === "settleStep" && when === "after") expect(step?.outcome).toBe("completed");
    else if (step) expectInterrupted(step);
    await expectNextWorks(processes, next);
  },
);

it("F26 a process suspended longer than its lease finds its Step settled and sends no end of its answer", async () => {
  const processes = await startProcesses(async (exchange) => {
    await stopsInStreams(exchange);
    if (asksForStream(exchange.body)) await exchange.closed;
  });
  const stopped = await processes.start();
  const client = await processes.post(stopped, { stream: true });
  await client.until("Half of it");
  stopped.pause();
  const gateway = await processes.start();
  await recoverAfterLapse(gateway);
  expectInterrupted((await processes.steps())[0]);
  stopped.resume();
  client.reset();
  await processes.upstream.requests[0]?.closed;
  await expectNextWorks(processes, gateway);
  expectInterrupted((await processes.steps())[0]);
});
