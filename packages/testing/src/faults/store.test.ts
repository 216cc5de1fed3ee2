import { memoryStore } from "@tollgate/store-memory";
import { expect, it } from "vitest";
import { createTestGateway } from "../test-gateway.ts";
import { faultyStore, type StoreFault } from "./store.ts";

async function gatewayOn(on: StoreFault) {
  const { store, fault } = faultyStore(memoryStore(), { on });
  return { fault, ...(await createTestGateway({ store })) };
}

it("fails only the named call, before it writes anything", async () => {
  const { gateway, chat, store } = await gatewayOn({ verb: "openStep", nth: 2, when: "before" });
  const statuses: number[] = [];
  for (let call = 1; call <= 3; call++) statuses.push((await gateway.fetch(chat())).status);
  expect(statuses).toEqual([200, 503, 200]);
  const steps = await store.steps.list({ organizationId: null }, { cursor: null, limit: 9 });
  expect(steps.data).toHaveLength(2);
});

it("fails after the commit and keeps the written records", async () => {
  const { gateway, chat, store } = await gatewayOn({ verb: "openStep", nth: 1, when: "after" });
  expect((await gateway.fetch(chat())).status).toBe(503);
  const steps = await store.steps.list({ organizationId: null }, { cursor: null, limit: 9 });
  expect(steps.data).toMatchObject([{ outcome: null }]);
});

it("fails every call from the named one until it is repaired", async () => {
  const on = { verb: "openStep", nth: 2, when: "before", lasting: true } as const;
  const { gateway, chat, fault } = await gatewayOn(on);
  const statuses: number[] = [];
  for (let call = 1; call <= 3; call++) statuses.push((await gateway.fetch(chat())).status);
  fault.mend();
  statuses.push((await gateway.fetch(chat())).status);
  expect(statuses).toEqual([200, 503, 503, 200]);
  expect(fault.calls()).toBe(4);
});

it("waits at a barrier until it is released", async () => {
  const on = { verb: "settleStep", nth: 1, when: "before", action: "wait" } as const;
  const { gateway, chat, fault, store } = await gatewayOn(on);
  const answer = gateway.fetch(chat());
  await fault.reached();
  const open = await store.steps.list({ organizationId: null }, { cursor: null, limit: 9 });
  expect(open.data).toMatchObject([{ outcome: null }]);
  fault.release();
  expect((await answer).status).toBe(200);
});
