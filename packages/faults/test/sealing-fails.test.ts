import { generateKeyPairSync } from "node:crypto";
import { type EvidenceSigner, ed25519Signer, everyOrganization } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { checkDump, createTestGateway, dumpStore, type TestGateway } from "@tollgate/testing";
import { afterAll, expect, inject, it, onTestFinished, vi } from "vitest";
import {
  type EmptyStores,
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "../src/stores/empty-stores.ts";

vi.setConfig({ testTimeout: 60_000 });

const postgres = emptyPostgresStores(inject("postgresUrl"));
afterAll(() => postgres.close());

const { privateKey } = generateKeyPairSync("ed25519");
const key = ed25519Signer({ name: "tollgate.example", privateKey });
const organizationId = "organization-1";

/** A gateway that seals. Its key is gone, or its sequencer fails, until `isBroken` is false. */
async function sealingOn(stores: EmptyStores, fault: "key" | "sequencer") {
  const { store, drop } = await stores.open();
  const broken = { isBroken: false };
  const events: string[] = [];
  const sign: EvidenceSigner["sign"] = (bytes) => {
    if (broken.isBroken && fault === "key") throw new Error("the signing key is gone");
    return key.sign(bytes);
  };
  const stuck: Store = {
    ...store,
    checkpoints: {
      ...store.checkpoints,
      async unsealed(query) {
        if (broken.isBroken && fault === "sequencer") throw new Error("the sequencer is dead");
        return store.checkpoints.unsealed(query);
      },
    },
  };
  const product = await createTestGateway({
    store: stuck,
    evidence: { signer: { ...key, sign } },
    observers: [
      (event) => {
        if ("what" in event && event.what === "sealing") events.push(event.type);
      },
    ],
  });
  onTestFinished(async () => {
    await product.gateway.close();
    await drop();
  });
  return { ...product, broken, events };
}

/** Moves the clock, and lets the gateway's own calls of a real database keep up with it. */
async function pass({ clock, store }: TestGateway, seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= step) {
    await clock.advance(step * 1_000);
    for (let call = 0; call < 8; call++) await store.budgets.version();
  }
}

const step = 5;

/** Minutes of calls, twelve in each. */
async function load(product: TestGateway, minutes: number): Promise<void> {
  const { gateway, chat } = product;
  for (let minute = 0; minute < minutes; minute++)
    for (let part = 0; part < 3; part++) {
      const calls = Array.from({ length: 4 }, () => gateway.fetch(chat()));
      for (const answer of await Promise.all(calls)) expect(answer.status).toBe(200);
      await pass(product, 20);
    }
}

const cases = [emptyMemoryStores, emptySqliteStores, postgres].flatMap((stores) =>
  (["key", "sequencer"] as const).map((fault) => ({ name: stores.name, stores, fault })),
);

it.each(cases)(
  "F50 calls go on for ten minutes without the $fault that seals evidence, which then catches up and skips nothing, on $name",
  async ({ stores, fault }) => {
    const product = await sealingOn(stores, fault);
    const { gateway, store, clock, broken, events } = product;
    await load(product, 1);
    await gateway.evidence.seal();
    expect(await gateway.health()).toMatchObject({ ready: true, degraded: [] });

    broken.isBroken = true;
    await load(product, 10);
    expect(await gateway.health()).toMatchObject({ ready: true, degraded: ["sealing"] });
    expect(gateway.status().unsealedMs).toBeGreaterThan(9 * 60_000);
    expect(events).toEqual(["gateway.degraded"]);
    // A failing key leaves at most one batch unsigned.
    const page = { cursor: null, limit: 1_000 };
    const { data } = await store.checkpoints.list({ organizationId, from: 0 }, page);
    expect(data.filter(({ note }) => note === null).length).toBeLessThanOrEqual(1);

    broken.isBroken = false;
    for (let round = 0; events.length < 2 && round < 100; round++) await pass(product, step);
    expect(events).toEqual(["gateway.degraded", "gateway.restored"]);
    await gateway.evidence.seal();
    expect(await gateway.health()).toMatchObject({ ready: true, degraded: [] });
    const leaves = 1 + 11 * 12 * 2;
    expect(await gateway.evidence.verify({ organizationId: everyOrganization })).toMatchObject([
      { organizationId: null, size: 1, problem: null },
      { organizationId, size: leaves, problem: null },
    ]);
    const query = { organizations: [organizationId], at: clock.now(), activity: gateway.activity };
    const dump = await dumpStore(store, query);
    expect(dump.leaves).toHaveLength(leaves);
    expect(checkDump(dump)).toEqual([]);
  },
);
