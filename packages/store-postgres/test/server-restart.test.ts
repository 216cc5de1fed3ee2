import { startPostgres } from "@tollgate/testing/postgres";
import { expect, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { withClient } from "./databases.ts";

const restarts = 2;

it("keeps every acknowledged change whole when the server crashes under load (F27, F33)", async () => {
  const server = await startPostgres({ fsync: true });
  onTestFinished(() => server.stop());
  const store = postgresStore({ url: server.url });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);

  const acknowledged = { opened: new Set<string>(), settled: new Set<string>() };
  let isOver = false;
  const worker = async (number: number): Promise<void> => {
    for (let count = 0; !isOver; count++) {
      const id = `${number}-${count}`;
      // The outcome of a rejected call is unknown, but it must be complete.
      try {
        await store.openStep(stepIntent(id, [hold(Number.MAX_SAFE_INTEGER)]));
        acknowledged.opened.add(id);
        await store.settleStep(stepSettlement(id));
        acknowledged.settled.add(id);
      } catch (error) {
        expect(String(error)).toContain("PostgreSQL store");
      }
    }
  };
  const workers = Array.from({ length: 8 }, (_, number) => worker(number));
  const more = async (than: number): Promise<void> => {
    while (acknowledged.settled.size < than) await new Promise((resolve) => setImmediate(resolve));
  };
  for (let restart = 0; restart < restarts; restart++) {
    await more(acknowledged.settled.size + 25);
    await server.restart("immediate");
  }
  await more(acknowledged.settled.size + 25);
  isOver = true;
  await Promise.all(workers);

  for (const id of acknowledged.opened)
    expect(await store.steps.get(owner.organizationId, id), id).not.toBeNull();
  for (const id of acknowledged.settled)
    expect((await store.steps.get(owner.organizationId, id))?.outcome, id).toBe("completed");
  const query = { at: 0, clock: "gateway", after: null, limit: 1_000 } as const;
  for (const { step } of (await store.lapsedSteps(query)).steps)
    await store.settleStep({ ...stepSettlement(step.id), outcome: "interrupted" });
  await expectWhole(server.url);
}, 60_000);

/** Checks that every Step has all its rows, every row has its Step, and the counters are the sums of their holds. */
async function expectWhole(url: string): Promise<void> {
  const { rows } = await withClient(
    (client) =>
      client
        .query(`SET search_path TO tollgate; SELECT
        (SELECT count(*) FROM steps) AS steps,
        (SELECT count(*) FROM steps WHERE outcome = 'open') AS open,
        (SELECT count(*) FROM open_steps) AS listed,
        (SELECT count(*) FROM decisions) AS decisions,
        (SELECT count(*) FROM turns) AS turns,
        (SELECT count(*) FROM sessions) AS sessions,
        (SELECT count(*) FROM transcript_parts WHERE kind = 'request') AS requests,
        (SELECT count(*) FROM transcript_parts WHERE kind = 'reply') AS replies,
        (SELECT count(*) FROM leaves WHERE kind = 'step.opened') AS openings,
        (SELECT count(*) FROM leaves WHERE kind = 'step.settled') AS settlements,
        (SELECT count(*) FROM holds WHERE settled IS NOT NULL) AS holds,
        (SELECT held FROM budget_counters) AS held,
        (SELECT settled - (SELECT sum(settled) FROM holds) FROM budget_counters) AS drift`)
        .then(
          // The results of both statements arrive together.
          (results) => [results].flat().at(-1) ?? { rows: [] },
        ),
    url,
  );
  const [{ steps, open, listed, held, drift, ...counts }] = rows;
  expect({ open, listed, held, drift }).toEqual({ open: "0", listed: "0", held: "0", drift: "0" });
  expect(new Set(Object.values(counts))).toEqual(new Set([steps]));
}
