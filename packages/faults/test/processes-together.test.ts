import { sqliteStore } from "@tollgate/store-sqlite";
import { expect, it } from "vitest";
import type { Processes } from "../src/processes.ts";
import { readAnswer } from "../src/read-answer.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";
import {
  expectInterrupted,
  expectNextWorks,
  lapse,
  processes,
  recoverAfterLapse,
} from "./process-fixture.ts";

it("F28 recovery that is killed, and two recoveries at once, settle each Step once", async () => {
  const of = await processes();
  const killed = await of.start();
  const clients = await Promise.all([1, 2, 3, 4].map(() => of.post(killed, { stream: true })));
  for (const client of clients) await client.until("Half of it");
  await killed.kill();

  const halfway = await of.start({ waitsAt: { verb: "settleStep", nth: 2, when: "before" } });
  await halfway.command("push", lapse);
  void halfway.command("recover").catch(() => {});
  await halfway.reached("store");
  await halfway.kill();

  const peers = [await of.start(), await of.start()];
  await Promise.all(peers.map(recoverAfterLapse));
  // The leaves tell that each was settled once: the checkers count them.
  for (const step of await of.steps()) expectInterrupted(step);
  expect(await of.problems()).toEqual([]);
  const [next] = peers;
  if (next) await expectNextWorks(of, next);
});

it("F26 two processes recover each other's Steps, each once", async () => {
  const of = await processes();
  const first = await of.start();
  await (await of.post(first, { stream: true })).until("Half of it");
  await first.kill();
  const second = await of.start();
  await recoverAfterLapse(second);
  await (await of.post(second, { stream: true })).until("Half of it");
  await second.kill();
  const third = await of.start();
  await third.command("push", 2 * lapse);
  await third.command("recover");
  const steps = await of.steps();
  expect(steps).toHaveLength(2);
  for (const step of steps) expectInterrupted(step);
  await expectNextWorks(of, third);
});

it("F40 two processes on one file let through together what a hard budget fits", async () => {
  const held = Promise.withResolvers<void>();
  const of = await processes(async ({ send, body }) => {
    await held.promise;
    await send(goodAnswer(body));
  });
  const [first, second] = [await of.start({ requests: 50 }), await of.start({ requests: 50 })];
  const answers = Array.from({ length: 200 }, async (_, at) => {
    const client = await of.post(at % 2 === 0 ? first : second);
    return readAnswer(await client.ended()).status;
  });
  let refused = 0;
  for (const answer of answers) void answer.then((status) => void (status === 429 && refused++));
  while (refused < 150 || of.upstream.requests.length < 50)
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect(of.upstream.requests).toHaveLength(50);
  held.resolve();
  const statuses = await Promise.all(answers);
  expect(statuses.filter((status) => status === 200)).toHaveLength(50);
  expect(statuses.filter((status) => status === 429)).toHaveLength(150);
  expect(of.upstream.requests).toHaveLength(50);
  expect(await of.problems()).toEqual([]);
  const few = (await of.dump()).counters.find(({ budgetId }) => budgetId === "few");
  expect(few).toMatchObject({ settled: 50, held: 0 });
});

it("P2 of two suspended processes the first to wake leaves the other's stream alone for one more round", async () => {
  const of = await processes();
  const [running, peer] = [await of.start(), await of.start()];
  const client = await of.post(running, { stream: true });
  await client.until("Half of it");
  running.pause();
  await peer.command("round", lapse);
  // The peer's next round begins when the other has renewed its lease, however slow this machine is.
  peer.pause();
  expect((await of.steps())[0]?.outcome).toBeNull();
  running.resume();
  await running.command("push", lapse);
  await leasedPast(of, Date.now() + lapse);
  peer.resume();
  await peer.command("round", 5_000);
  expect(await peer.command("recover")).toBe(0);
  expect((await of.steps())[0]?.outcome).toBeNull();
});

/** Resolves when the leases of all open Steps last longer than until then. */
async function leasedPast(of: Processes, at: number): Promise<void> {
  const store = sqliteStore({ filename: of.filename });
  const query = { at, clock: "gateway" as const, limit: 1 };
  while ((await store.lapsedSteps(query)).length > 0);
  await store.close();
}
