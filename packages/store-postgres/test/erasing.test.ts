import { leafHash } from "@tollgate/core/store";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  insertKey,
  leafOf,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const day = 86_400_000;
const at = Date.UTC(2026, 0, 8);

it("waits for a Session that is being continued, and then does not erase it", async () => {
  const schema = freshSchema();
  const store = postgresStore({ url: inject("postgresUrl") }, { schema });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  await store.openStep(stepIntent("first"));
  await store.settleStep(stepSettlement("first"));
  const { organizationId } = owner;
  const sweep = () =>
    store.sessions.sweep({
      ...{ from: "", at, keep: day, limit: 100 },
      leaf: ({ sessionIds }) => {
        const meta = JSON.stringify(sessionIds);
        const kind = "transcripts.erased";
        return { id: "erasure", organizationId, kind, at, meta, hash: leafHash(meta) };
      },
    });
  const isKept = async () =>
    (await store.sessions.transcript(organizationId, "session of first"))?.every(
      ({ content }) => content !== null,
    );
  await withClient(async (opening) => {
    await opening.query(`BEGIN; UPDATE ${schema}.sessions SET updated_at = ${at}`);
    const swept = sweep();
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`;
    const isWaiting = () =>
      withClient(async (client) => (await client.query(waiting, [`%${schema}.%`])).rows);
    while ((await isWaiting()).length === 0);
    await opening.query("COMMIT");
    expect(await swept).toMatchObject({ removed: 0 });
  });
  expect(await isKept()).toBe(true);
});

it("waits for no sweep or deletion of a store in another schema of the database", async () => {
  const locks = new Set<string>();
  let count = 0;
  for (const schema of [freshSchema(), freshSchema()]) {
    const store = postgresStore({ url: inject("postgresUrl") }, { schema });
    onTestFinished(() => store.close());
    await store.migrate();
    const leaf = () => leafOf("transcripts.erased", "leaf");
    const works = [
      () => store.sessions.sweep({ from: "", at, keep: day, limit: 9, leaf }),
      () => store.responses.sweep({ at, limit: 9 }),
      () =>
        store.responses.delete({
          owner,
          id: "response",
          at,
          leaf: leafOf("response.deleted", "leaf"),
        }),
    ];
    for (const work of works)
      await withClient(async (client) => {
        // Each takes its locks before it reads one of these tables.
        const tables = [`${schema}.organizations`, `${schema}.responses`];
        await client.query(`BEGIN; LOCK TABLE ${tables.join(", ")}`);
        const done = work();
        const taken = `SELECT objid FROM pg_locks JOIN pg_stat_activity USING (pid)
          WHERE locktype = 'advisory' AND granted AND wait_event_type = 'Lock' AND query LIKE $1`;
        const read = () =>
          withClient(async (watching) => (await watching.query(taken, [`%${schema}.%`])).rows);
        let rows = await read();
        while (rows.length === 0) rows = await read();
        for (const { objid } of rows) locks.add(`${objid}`);
        count += rows.length;
        await client.query("COMMIT");
        await done;
      });
  }
  // In each schema, a deletion shares one of its two locks with the sweep of responses.
  expect(count).toBe(8);
  expect(locks.size).toBe(6);
});
