import { countingIds, createTestGateway, faultyStore, manualClock } from "@tollgate/testing";
import { describe, expect, it, vi } from "vitest";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";
import { heldOn } from "./written.ts";

const budgets = [{ id: "tokens", limit: { tokens: 100_000 }, period: "day" }] as const;

/** Two gateways on one store. The first one's clock stops, so it renews no lease, like a dead process. */
async function oneOfTwoGone(open: (typeof stores)[number][1]) {
  const store = open();
  const gone = await createTestGateway({ store, budgets });
  const log = eventLog();
  const clock = manualClock();
  const { observers } = log;
  const peer = await createTestGateway({ store, clock, ids: countingIds(1), budgets, observers });
  const { organizationId } = gone.key;
  const steps = async () => (await peer.gateway.steps.list({ organizationId })).data;
  return { gone, peer, clock, log, steps };
}

describe.each(stores)("a Step whose process is lost, on %s", (_, open) => {
  it("is settled once as interrupted by another process after the lease lapses, and holds nothing", async () => {
    const { gone, peer, clock, log, steps } = await oneOfTwoGone(open);
    const hold = gone.provider.hold({ afterEvents: 2 });
    const answer = await gone.gateway.fetch(gone.chat({ stream: true, max_tokens: 30 }));
    expect(await heldOn(peer.gateway, "tokens")).toBe(40);

    await clock.advance("14s");
    expect(await peer.gateway.recover()).toBe(0);
    expect(await steps()).toMatchObject([{ outcome: "open" }]);
    await clock.advance("6s");
    expect(await steps()).toMatchObject([
      {
        outcome: "interrupted",
        reason: "process_lost",
        usageBasis: "estimated",
        promptTokens: 10,
        completionTokens: 30,
        attempts: [{ outcome: "interrupted" }],
      },
    ]);
    expect((await peer.gateway.budgets.status({ id: "tokens" })).data).toMatchObject([
      { settled: 40, held: 0 },
    ]);
    expect(await peer.gateway.recover()).toBe(0);
    expect(log.seen.filter(({ type }) => type === "step.settled")).toHaveLength(1);

    // The process was alive after all. Its late settlement changes nothing, and the client gets no complete answer.
    hold.release();
    const text = await answer.text();
    expect(text).toContain("evidence_unavailable");
    expect(text).not.toContain('"finish_reason":"stop"');
    expect(await steps()).toMatchObject([{ outcome: "interrupted", completionTokens: 30 }]);
  });

  it("is estimated from the output that its process last recorded", async () => {
    const { gone, clock, steps } = await oneOfTwoGone(open);
    gone.provider.hold({ afterEvents: 2 });
    gone.provider.reply({ text: ["123456789", "x"] });
    const answer = await gone.gateway.fetch(gone.chat({ stream: true, max_tokens: 30 }));
    await answer.body?.getReader().read();
    await gone.clock.advance("5s");
    await clock.advance("30s");
    expect(await steps()).toMatchObject([
      { outcome: "interrupted", promptTokens: 10, completionTokens: 3 },
    ]);
  });

  it("is left alone while its process renews its lease, however long it takes", async () => {
    const store = open();
    const clock = manualClock();
    const running = await createTestGateway({ store, clock });
    const peer = await createTestGateway({ store, clock, ids: countingIds(1) });
    const hold = running.provider.hold();
    const answering = running.gateway.fetch(running.chat());
    await hold.reached();
    await clock.advance("1m");
    expect(await peer.gateway.recover()).toBe(0);
    hold.release();
    await completionOf(answering);
  });

  it("is left alone for one more round by a process that missed its own renewals (H11)", async () => {
    const store = open();
    const clock = manualClock();
    const running = await createTestGateway({ store, clock });
    const peerClock = manualClock();
    const log = eventLog();
    const { observers } = log;
    const ids = countingIds(1);
    await createTestGateway({ store, clock: peerClock, ids, observers });
    const hold = running.provider.hold();
    const answering = running.gateway.fetch(running.chat());
    await hold.reached();
    // Both were suspended for 17 seconds. Afterwards, the peer's timer happens to fire first.
    for (const suspended of [clock, peerClock]) suspended.setWall(suspended.now() + 17_000);
    await peerClock.advance("5s");
    await clock.advance("5s");
    await peerClock.advance("5s");
    expect(log.seen.map(({ type }) => type)).not.toContain("step.settled");
    hold.release();
    await completionOf(answering);
  });

  it("is continued by its client's retry", async () => {
    const { gone, peer, clock, steps } = await oneOfTwoGone(open);
    const hold = gone.provider.hold();
    void gone.gateway.fetch(gone.chat());
    await hold.reached();
    await clock.advance("30s");
    const retry = await completionOf(peer.gateway.fetch(gone.chat()));
    const [second, first] = await steps();
    expect([second?.sessionId, second?.turnId]).toEqual([first?.sessionId, first?.turnId]);
    expect(retry.session_id).toBe(first?.sessionId);
  });

  it("takes long to settle without delaying the leases of Steps that run meanwhile", async () => {
    const store = open();
    const gone = await createTestGateway({ store });
    const clock = manualClock();
    const on = { verb: "settleStep", nth: 1, when: "before", action: "wait" } as const;
    const { store: slow, fault } = faultyStore(store, { on });
    const peer = await createTestGateway({ store: slow, clock, ids: countingIds(1) });
    const third = await createTestGateway({ store, clock, ids: countingIds(2) });
    const { organizationId } = gone.key;
    const steps = async () => (await third.gateway.steps.list({ organizationId })).data;
    gone.provider.hold();
    void gone.gateway.fetch(gone.chat());
    await vi.waitFor(async () => expect(await steps()).toHaveLength(1));
    const hold = peer.provider.hold();
    const answering = peer.gateway.fetch(peer.chat());
    await hold.reached();
    await clock.advance("20s");
    await fault.reached();
    await clock.advance("1m");
    expect(await third.gateway.recover()).toBe(0);
    fault.release();
    hold.release();
    await completionOf(answering);
  });

  it("is left alone by a recovery during which all processes were suspended", async () => {
    const store = open();
    const gone = await createTestGateway({ store });
    const [clock, others] = [manualClock(), manualClock()];
    const on = { verb: "settleStep", nth: 1, when: "before", action: "wait" } as const;
    const { store: slow, fault } = faultyStore(store, { on });
    const ids = countingIds(2);
    const live = await createTestGateway({ store, clock: others, ids, maintenance: false });
    const first = gone.provider.hold();
    for (let call = 0; call < 100; call++) void gone.gateway.fetch(gone.chat());
    await first.reached(100);
    const hold = live.provider.hold();
    const answering = live.gateway.fetch(live.chat());
    await hold.reached();
    const peer = await createTestGateway({ store: slow, clock, ids: countingIds(1) });
    await peer.gateway.ready();
    await others.advance("20s");
    await clock.advance("20s");
    await fault.reached();
    for (const each of [clock, others]) each.setWall(each.now() + 60_000);
    fault.release();
    await clock.advance(0);
    hold.release();
    await completionOf(answering);
  });

  it("is settled once by two processes that recover at the same time", async () => {
    const store = open();
    const gone = await createTestGateway({ store });
    const clock = manualClock();
    const peers = await Promise.all(
      [1, 2].map((series) =>
        createTestGateway({ store, clock, ids: countingIds(series), maintenance: false }),
      ),
    );
    const hold = gone.provider.hold();
    for (let call = 0; call < 5; call++) void gone.gateway.fetch(gone.chat());
    await hold.reached(5);
    await clock.advance("16s");
    const recovered = await Promise.all(peers.map(({ gateway }) => gateway.recover()));
    expect(recovered.reduce((sum, count) => sum + count, 0)).toBe(5);
  });
});
