import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import { insertKey, stepIntent } from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

const script = fileURLToPath(new URL("migrating-process.ts", import.meta.url));

function openStore(schema: string, migrate: "auto" | "check" = "auto") {
  const store = postgresStore({ url: inject("postgresUrl") }, { schema, migrate });
  onTestFinished(() => store.close());
  return store;
}

function startProcess(schema: string) {
  const parameters = ["--conditions=tollgate-source", script, inject("postgresUrl"), schema];
  const child = spawn(process.execPath, parameters, { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return {
    child,
    ready: once(createInterface({ input: child.stdout }), "line"),
    exited: once(child, "exit"),
  };
}

it("is migrated by one of 4 concurrent processes while the others wait (F45)", async () => {
  const schema = freshSchema();
  const processes = Array.from({ length: 4 }, () => startProcess(schema));
  await Promise.all(processes.map(({ ready }) => ready));
  for (const { child } of processes) child.stdin.end("go\n");
  for (const { exited } of processes) expect(await exited).toEqual([0, null]);
  const { rows } = await withClient((client) =>
    client.query(`SELECT version FROM ${schema}.tollgate_schema`),
  );
  expect(rows).toHaveLength(1);
  const store = openStore(schema, "check");
  await store.migrate();
  await insertKey(store);
  expect(await store.openStep(stepIntent("first"))).toMatchObject({ opened: true });
}, 20_000);

it("waits for a running migration, and then finds it done (F45)", async () => {
  const schema = freshSchema();
  const store = openStore(schema);
  await withClient(async (client) => {
    await client.query("BEGIN");
    const lock = "pg_advisory_xact_lock(hashtextextended($1, 0))";
    await client.query(`SELECT ${lock}`, [`tollgate migration of ${schema}`]);
    const migrated = store.migrate();
    const isWaiting = async (): Promise<boolean> => {
      // Read in its own transaction: within one, the answer would stay the same.
      const { rows } = await withClient((observer) =>
        observer.query(
          `SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE $1`,
          [`%migration of ${schema}%`],
        ),
      );
      return rows.length > 0;
    };
    while (!(await isWaiting())) await new Promise((resolve) => setImmediate(resolve));
    const before = await client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]);
    expect(before.rows).toHaveLength(0);
    await client.query("COMMIT");
    await migrated;
  });
  expect(await store.budgets.version()).toBe(0);
});

it("does not change a current schema", async () => {
  const schema = freshSchema();
  const store = openStore(schema);
  await store.migrate();
  await insertKey(store);
  await store.migrate();
  expect(await store.openStep(stepIntent("first"))).toMatchObject({ opened: true });
});

it("rejects the schema of a newer release, and every call on it (F45)", async () => {
  const schema = freshSchema();
  await openStore(schema).migrate();
  await withClient((client) => client.query(`UPDATE ${schema}.tollgate_schema SET version = 99`));
  const older = openStore(schema);
  await expect(older.migrate()).rejects.toThrow("version 99, made by a newer release");
  await expect(older.openStep(stepIntent("late"))).rejects.toThrow("newer release");
  await expect(older.steps.get("acme", "late")).rejects.toThrow("newer release");
});

it("changes nothing if migrate is set to check", async () => {
  const schema = freshSchema();
  const store = openStore(schema, "check");
  await expect(store.migrate()).rejects.toThrow("call migrate() first");
  const { rows } = await withClient((client) =>
    client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]),
  );
  expect(rows).toHaveLength(0);
});

it("checks in one migration without changes, and creates the schema in the next", async () => {
  const schema = freshSchema();
  const store = openStore(schema);
  await expect(store.migrate("check")).rejects.toMatchObject({
    message: `PostgreSQL store: schema ${schema} does not exist; call migrate() first`,
    needsMigration: `PostgreSQL store: schema ${schema} does not exist`,
  });
  await store.migrate();
  await store.migrate("check");
});

it("works in databases with another search path and text order", async () => {
  const schema = freshSchema();
  const store = openStore(schema);
  await store.migrate();
  const { rows } = await withClient((client) =>
    client.query(
      `SELECT count(*)::INTEGER AS other FROM information_schema.columns
       WHERE table_schema = $1 AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`,
      [schema],
    ),
  );
  expect(rows).toEqual([{ other: 0 }]);
});

it.each(["", "Tollgate", "1st", "pg_mine", "a-b", "x; DROP SCHEMA public", "s".repeat(49)])(
  "rejects %j as the name of a schema",
  (schema) => {
    expect(() => postgresStore({ url: "postgres://localhost" }, { schema })).toThrow(
      expect.objectContaining({ code: "invalid_configuration", param: "schema" }),
    );
  },
);

it("continues after its schema is dropped and created again, as by restoring a backup", async () => {
  const schema = freshSchema();
  const store = openStore(schema);
  const peer = openStore(schema);
  await store.migrate();
  await insertKey(store);
  expect(await store.openStep(stepIntent("before"))).toMatchObject({ opened: true });
  await withClient((client) => client.query(`DROP SCHEMA ${schema} CASCADE`));
  await peer.migrate();
  await insertKey(peer);
  expect(await store.openStep(stepIntent("after"))).toMatchObject({ opened: true });
});

it("rejects calls after closing, and can be closed twice", async () => {
  const store = postgresStore({ url: inject("postgresUrl") }, { schema: freshSchema() });
  await store.migrate();
  await store.close();
  await store.close();
  await expect(store.budgets.version()).rejects.toThrow("the store is closed");
});
