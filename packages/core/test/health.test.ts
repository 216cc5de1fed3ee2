import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";

const ready = { ready: true, reasons: [], degraded: [] };

/** A store that a test can break. It counts the checks. */
function breakable() {
  const store = memoryStore();
  const broken = { isSilent: false, isFailing: false, checks: 0 };
  const unlessBroken = async (): Promise<void> => {
    if (broken.isSilent) await new Promise(() => {});
    if (broken.isFailing) throw new Error("the disk is gone");
  };
  const breaking: Store = {
    ...store,
    async migrate(mode) {
      if (mode === "check") broken.checks++;
      await unlessBroken();
      await store.migrate(mode);
    },
    async renewLease(renewal) {
      await unlessBroken();
      await store.renewLease(renewal);
    },
  };
  return { store: breaking, broken };
}

it("is ready once the store answers, which it asks at most every five seconds", async () => {
  const { store, broken } = breakable();
  const { gateway, clock } = await createTestGateway({ store });
  for (let check = 0; check < 10; check++) expect(await gateway.health()).toEqual(ready);
  expect(broken.checks).toBe(1);
  await clock.advance("5s");
  await gateway.health();
  expect(broken.checks).toBe(2);
});

it("is not ready while the store fails, and is ready again when it answers", async () => {
  const { store, broken } = breakable();
  const { gateway, clock } = await createTestGateway({ store });
  broken.isFailing = true;
  expect(await gateway.health()).toEqual({ ready: false, reasons: ["store"], degraded: [] });
  broken.isFailing = false;
  await clock.advance("5s");
  expect(await gateway.health()).toEqual(ready);
});

it("waits at most a second for the store", async () => {
  const { store, broken } = breakable();
  const { gateway, clock } = await createTestGateway({ store });
  broken.isSilent = true;
  const begun = clock.monotonic();
  expect(await clock.until(gateway.health())).toEqual({
    ready: false,
    reasons: ["store"],
    degraded: [],
  });
  expect(clock.monotonic() - begun).toBe(1_000);
});

it("is not ready if the lease was not renewed for 12 seconds", async () => {
  const { store, broken } = breakable();
  const { gateway, clock } = await createTestGateway({ store });
  broken.isFailing = true;
  await clock.advance("12s");
  expect((await gateway.health()).reasons).toEqual(["store"]);
  await clock.advance("1s");
  expect((await gateway.health()).reasons).toEqual(["store", "lease"]);
  broken.isFailing = false;
  await clock.advance("5s");
  expect(await gateway.health()).toEqual(ready);
});

it.each(["/", "/ai", "/ai/"])(
  "answers the head of its base URL %s until it closes",
  async (path) => {
    const { gateway, clock } = await createTestGateway();
    const head = () => gateway.fetch(`http://in-process${path}`, { method: "HEAD" });
    const answer = await head();
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
    expect((await gateway.fetch("http://in-process/v1/chat", { method: "HEAD" })).status).toBe(404);
    expect((await gateway.fetch("http://in-process/v1/models", { method: "HEAD" })).status).toBe(
      405,
    );
    await clock.until(gateway.close());
    expect((await head()).status).toBe(503);
  },
);

it("is not ready from the moment it closes", async () => {
  const { gateway, provider, chat, clock } = await createTestGateway();
  const hold = provider.hold();
  const running = gateway.fetch(chat());
  await hold.reached();
  const closing = gateway.close();
  const closed = { ready: false, reasons: ["closing"], degraded: [] };
  expect(await gateway.health()).toEqual(closed);
  await clock.until(closing);
  expect(await gateway.health()).toEqual(closed);
  await running;
});

it("tells how busy the process is, from its first request to its last", async () => {
  const { store, broken } = breakable();
  const { gateway, provider, chat, clock } = await createTestGateway({
    store: { ...store, status: () => ({ waiting: 3, inUse: 2, most: 10 }) },
  });
  const idle = {
    ...{ openSteps: 0, admitted: 0, drains: 0, closing: false, leaseAgeMs: 0 },
    unsealedMs: null,
    store: { waiting: 3, inUse: 2, most: 10 },
  };
  expect(gateway.status()).toEqual(idle);
  const hold = provider.hold();
  const client = new AbortController();
  const leaves = gateway.fetch(chat(), { signal: client.signal }).catch(() => {});
  await hold.reached();
  const stays = gateway.fetch(chat());
  await expect.poll(() => provider.calls.length).toBe(2);
  expect(gateway.status()).toEqual({ ...idle, openSteps: 2, admitted: 2 });
  client.abort(new Error("gone"));
  await leaves;
  expect(gateway.status()).toEqual({ ...idle, openSteps: 2, admitted: 1, drains: 1 });
  broken.isFailing = true;
  await clock.advance("7s");
  broken.isFailing = false;
  expect(gateway.status().leaseAgeMs).toBe(7_000);
  const closing = gateway.close();
  expect(gateway.status()).toMatchObject({ closing: true, openSteps: 2 });
  hold.release();
  await Promise.all([stays, clock.until(closing)]);
  expect(gateway.status()).toMatchObject({ openSteps: 0, admitted: 0, drains: 0 });
});
