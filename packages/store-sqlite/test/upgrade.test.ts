import { DatabaseSync } from "node:sqlite";
import type { Store } from "@tollgate/core/store";
import { schemaSteps } from "@tollgate/store-sql";
import { expect, it, onTestFinished } from "vitest";
import {
  insertKey,
  leafOf,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { sqliteDialect } from "../src/database/sqlite-dialect.ts";
import { sqliteStore } from "../src/index.ts";
import { temporaryFile } from "./temporary-folder.ts";

const { organizationId } = owner;
const page = { cursor: null, limit: 10 };

function openStore(filename: string): Store {
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  return store;
}

/** A database of version 1 with all that the tables of that version have of another. */
function olderDatabase(from: string): string {
  const filename = temporaryFile("older.db");
  const database = new DatabaseSync(filename);
  for (const statement of schemaSteps(sqliteDialect).get(1) ?? []) database.exec(statement);
  database.exec(`DELETE FROM store_state; ATTACH '${from}' AS present`);
  const tables = database.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table'");
  for (const { name } of tables.all()) {
    const columns = database
      .prepare(`SELECT name FROM pragma_table_xinfo('${name}', 'main') WHERE hidden = 0`)
      .all()
      .map((column) => String(column["name"]))
      .join(", ");
    database.exec(`INSERT INTO main.${name} (${columns}) SELECT ${columns} FROM present.${name}`);
  }
  database.exec(`CREATE TABLE tollgate_schema (version INTEGER NOT NULL) STRICT;
    INSERT INTO tollgate_schema (version) VALUES (1)`);
  database.close();
  return filename;
}

const recorded = async (store: Store) =>
  Promise.all([
    store.keys.list({ organizationId }, page),
    store.steps.list({ organizationId }, page),
    store.sessions.list({ organizationId }, page),
    store.decisions.list({ organizationId }, page),
    store.evidence.list({ organizationId }, page),
  ]);

it("brings a database of version 1 along with everything in it, and takes what is new", async () => {
  const present = temporaryFile("present.db");
  const first = openStore(present);
  await first.migrate();
  await insertKey(first);
  for (const id of ["one", "open"]) await first.openStep(stepIntent(id));
  await first.settleStep(stepSettlement("one"));

  const older = olderDatabase(present);
  const store = openStore(older);
  await expect(store.steps.list({ organizationId }, page)).rejects.toThrow("call migrate() first");
  await Promise.all([store.migrate(), openStore(older).migrate()]);
  expect(await recorded(store)).toEqual(await recorded(first));
  expect(await store.settleStep(stepSettlement("open"))).toMatchObject({ settled: true });
  expect(await store.openStep(stepIntent("two"))).toMatchObject({ opened: true });

  const connection = {
    id: "connection",
    organizationId,
    gateway: "own",
    createdAt: 1,
    updatedAt: 2,
    keyId: "k1",
    wrappedKey: Uint8Array.of(1),
    credential: Uint8Array.of(2),
  };
  await store.connections.set({ connection, leaf: leafOf("connection.set", "connection") });
  expect(await store.connections.get(organizationId, "own")).toEqual(connection);

  const key = await store.keys.get(organizationId, owner.keyId);
  if (!key) expect.fail("the key is gone");
  const entry = { key: { ...key, id: "ensured", prefix: "" }, salt: new Uint8Array(32) };
  const leaf = leafOf("key.created", "ensured");
  expect((await store.keys.ensure({ ...entry, leaf })).key.id).toBe("ensured");
});
