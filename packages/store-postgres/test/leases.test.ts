import { setTimeout as pause } from "node:timers/promises";
import type { LeaseClock, LeaseRenewal, Store } from "@tollgate/core/store";
import { expect, inject, it, onTestFinished } from "vitest";
import { insertKey, stepIntent, stepSettlement } from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const leaseMs = 15_000;
const minutes = 60_000;

/** Two stores on one schema, one of which has a Step open. */
async function openStores() {
  const schema = freshSchema();
  const [store, peer] = [1, 2].map(() => postgresStore({ url: inject("postgresUrl") }, { schema }));
  if (!store || !peer) throw new Error("no store is open");
  onTestFinished(async () => {
    await store.close();
    await peer.close();
  });
  await store.migrate();
  await insertKey(store);
  await store.openStep({ ...stepIntent("step"), process: { id: "busy", renewal: 1 } });
  return { schema, store, peer };
}

/** A lease renewal of a process whose machine's clock differs from the server's. */
function beat(processId: string, apart: number): LeaseRenewal {
  const at = Date.now() + apart;
  return { processId, renewal: 1, at, until: at + leaseMs, clock: "store", steps: [] };
}

async function lapsedIn(
  store: Store,
  { at = Date.now(), clock = "store" }: { readonly at?: number; readonly clock?: LeaseClock } = {},
) {
  return (await store.lapsedSteps({ at, clock, after: null, limit: 9 })).steps;
}

it.each([-2 * minutes, 2 * minutes])(
  "measures leases by the server's clock: a peer whose clock is %i ms off recovers no live process (F39)",
  async (apart) => {
    const { store, peer } = await openStores();
    const at = Date.now() + apart;
    await store.renewLease(beat("busy", 0));
    expect(await lapsedIn(peer, { at })).toEqual([]);
    expect(await lapsedIn(peer, { at, clock: "gateway" })).toHaveLength(apart > 0 ? 1 : 0);
    await peer.renewLease(beat("busy", apart));
    expect(await lapsedIn(store)).toEqual([]);
  },
);

it("forgets a process with a lapsed lease once none of its Steps is open", async () => {
  const { schema, store, peer } = await openStores();
  const lapsed = { until: 0, at: 0 };
  await store.renewLease({ ...beat("idle", 0), ...lapsed });
  await store.renewLease({ ...beat("busy", 0), ...lapsed });
  await Promise.all([store.renewLease(beat("next", 0)), peer.renewLease(beat("other", 0))]);
  const { rows } = await withClient((client) =>
    client.query(`SELECT id FROM ${schema}.processes ORDER BY id`),
  );
  expect(rows.map(({ id }) => id)).toEqual(["busy", "next", "other"]);
});

it("never lets a Step look given up that opens while its process renews its lease", async () => {
  const { schema, store, peer } = await openStores();
  await store.renewLease(beat("busy", 0));
  const process = { id: "busy", renewal: 1 };
  await store.openStep({ ...stepIntent("quick"), process });
  await withClient(async (client) => {
    await client.query("BEGIN");
    await client.query(`LOCK TABLE ${schema}.steps IN SHARE MODE`);
    const opening = store.openStep({ ...stepIntent("slow"), process });
    const steps = ["step", "quick", "slow"].map((stepId) => ({
      organizationId: "acme",
      stepId,
      outputTokens: null,
    }));
    const renewing = store.renewLease({ ...beat("busy", 0), renewal: 2, steps });
    await pause(300);
    await client.query("COMMIT");
    expect(await opening).toMatchObject({ opened: true });
    await renewing;
    expect(await lapsedIn(peer)).toEqual([]);
  });
});

it("extends a lease under its former number while a Step takes long to open", async () => {
  const { schema, store, peer } = await openStores();
  await store.renewLease(beat("busy", 0));
  const lapsed = () => lapsedIn(peer);
  const steps = ["step", "slow"].map((stepId) => ({
    organizationId: "acme",
    stepId,
    outputTokens: null,
  }));
  const ended = { ...beat("busy", 0), at: 0, until: -1 };
  await store.renewLease(ended);
  const opening = await withClient(async (client) => {
    await client.query(`BEGIN; LOCK TABLE ${schema}.steps IN SHARE MODE`);
    const slow = store.openStep({ ...stepIntent("slow"), process: { id: "busy", renewal: 1 } });
    await store.renewLease({ ...beat("busy", 0), renewal: 2, steps });
    await store.renewLease({ ...beat("busy", 0), renewal: 3, steps });
    await client.query("COMMIT");
    return slow;
  });
  expect(opening).toMatchObject({ opened: true });
  expect(await lapsed()).toEqual([]);
  await store.renewLease({ ...beat("busy", 0), renewal: 4, steps });
  expect(await lapsed()).toEqual([]);
  await store.renewLease({ ...beat("busy", 0), renewal: 5 });
  expect(await lapsed()).toHaveLength(2);
});

it("begins a lapsed lease again while a Step takes long to open", async () => {
  const { schema, store, peer } = await openStores();
  await store.settleStep(stepSettlement("step"));
  await store.renewLease({ ...beat("busy", 0), at: 0, until: -1 });
  // Nothing of the process is open, so a peer's first renewal removes it.
  await peer.renewLease(beat("other", 0));
  const steps = [{ organizationId: "acme", stepId: "slow", outputTokens: null }];
  const opening = await withClient(async (client) => {
    await client.query(`BEGIN; LOCK TABLE ${schema}.steps IN SHARE MODE`);
    const slow = store.openStep({ ...stepIntent("slow"), process: { id: "busy", renewal: 1 } });
    await store.renewLease({ ...beat("busy", 0), renewal: 2, steps });
    await client.query("COMMIT");
    return slow;
  });
  expect(opening).toMatchObject({ opened: true });
  expect(await lapsedIn(peer)).toEqual([]);
});

it("renews the lease of many open Steps in one statement", async () => {
  const { schema, store } = await openStores();
  const ids = Array.from({ length: 200 }, (_, at) => `step ${at}`);
  const process = { id: "busy", renewal: 1 };
  await Promise.all(ids.map((id) => store.openStep({ ...stepIntent(id), process })));
  const steps = ids.map((stepId, at) => ({
    organizationId: "acme",
    stepId,
    outputTokens: at % 2 === 0 ? at : null,
  }));
  const written = (stepId: string) =>
    withClient((client) =>
      client.query(`SELECT xmin::text AS by, output_tokens AS tokens, renewal FROM ${schema}.open_steps
        WHERE step_id = '${stepId}'`),
    );
  await store.renewLease({ ...beat("busy", 0), renewal: 2, steps });
  const [even, odd] = [await written("step 42"), await written("step 43")];
  expect(even.rows).toMatchObject([{ tokens: "42", renewal: "2" }]);
  expect(odd.rows).toMatchObject([{ tokens: null, renewal: "2", by: even.rows[0].by }]);
  expect(await Promise.all(ids.map((id) => store.settleStep(stepSettlement(id))))).toHaveLength(
    200,
  );
});
