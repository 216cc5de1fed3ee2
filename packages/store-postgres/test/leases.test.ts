import type { LeaseRenewal } from "@tollgate/core/store";
import { expect, inject, it, onTestFinished } from "vitest";
import { insertKey, stepIntent } from "../../store-engine/test/step-intents.ts";
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

it.each([-2 * minutes, 2 * minutes])(
  "measures leases by the server's clock: a peer whose clock is %i ms off recovers no live process (F39)",
  async (apart) => {
    const { store, peer } = await openStores();
    const query = { at: Date.now() + apart, clock: "store", limit: 9 } as const;
    await store.renewLease(beat("busy", 0));
    expect(await peer.lapsedSteps(query)).toEqual([]);
    expect(await peer.lapsedSteps({ ...query, clock: "gateway" })).toHaveLength(apart > 0 ? 1 : 0);
    await peer.renewLease(beat("busy", apart));
    expect(await store.lapsedSteps({ ...query, at: Date.now() })).toEqual([]);
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
