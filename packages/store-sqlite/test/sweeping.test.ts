import { generateKeyPairSync } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { ed25519Signer } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { createTestGateway } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import {
  digestOf,
  insertKey,
  leafOf,
  owner,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { sqliteStore } from "../src/index.ts";

const expiresAt = 10;

const keptBytes = "SELECT coalesce(sum(length(messages)), 0) AS bytes FROM responses";

/** A store, with a record of its commits. */
interface Watched {
  readonly store: Store;
  readonly database: DatabaseSync;
  /** The turns of the event loop of its commits. */
  readonly turns: number[];
  /** The turns of its reads. */
  readonly reads: number[];
  /** The bytes of messages that the store had at each commit. */
  readonly bytes: number[];
}

async function openStore(): Promise<Watched> {
  const database = new DatabaseSync(":memory:");
  let turn = 0;
  const count = (): void => {
    turn++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const turns: number[] = [];
  const bytes: number[] = [];
  const reads: number[] = [];
  const store = sqliteStore({
    client: {
      exec(sql) {
        if (sql === "COMMIT") {
          turns.push(turn);
          const row = database.prepare(keptBytes).get();
          bytes.push(Number(row?.["bytes"]));
        }
        database.exec(sql);
      },
      prepare(sql) {
        const statement = database.prepare(sql);
        return {
          run: (...values) => statement.run(...values),
          get: (...values) => statement.get(...values),
          all(...values) {
            reads.push(turn);
            return statement.all(...values);
          },
        };
      },
      close() {},
    },
  });
  onTestFinished(async () => {
    clearImmediate(counting);
    await store.close();
    database.close();
  });
  await store.migrate();
  await insertKey(store);
  return { store, database, turns, reads, bytes };
}

/** Stores a response, and its answer for repeats of its request. */
async function storeResponse(
  store: Store,
  id: string,
  content: Uint8Array,
  previousResponseId: string | null = null,
): Promise<void> {
  const claim = { keySha256: digestHex(`key ${id}`), requestSha256: digestHex(id) };
  await store.openStep({ ...stepIntent(id), endpoint: "responses", claim });
  await store.settleStep({
    ...stepSettlement(id),
    response: {
      ...owner,
      id,
      stepId: id,
      sessionId: `session of ${id}`,
      dataClass: "D1_INTERNAL",
      previousResponseId,
      createdAt: 0,
      expiresAt,
      body: content,
      input: content,
      messages: content,
      inherited: Buffer.from("[]"),
    },
    claim: { state: "kept", expiresAt, answer: { model: "echo", headers: {}, body: content } },
  });
}

function digestHex(text: string): string {
  return Buffer.from(digestOf(text)).toString("hex");
}

it("removes large responses and claims in turns, and small ones at once", async () => {
  const { store, turns } = await openStore();
  const content = Buffer.alloc(200_000, "a");
  for (const id of ["a", "b", "c", "d", "e", "f"]) await storeResponse(store, id, content);
  for (const id of ["g", "h"]) await storeResponse(store, id, Buffer.from("{}"));
  turns.length = 0;
  expect(await store.responses.sweep({ at: expiresAt, limit: 100 })).toBe(16);
  // Five large responses alone, the sixth with the small ones, twice up to five claims, then nothing.
  expect(turns).toHaveLength(9);
  expect(new Set(turns).size).toBe(9);
  expect(await store.responses.get(owner, "a", 0)).toBeNull();
});

it("removes the messages that were kept for a large history in turns", async () => {
  const { store, turns, bytes } = await openStore();
  const content = Buffer.alloc(400_000, "a");
  const ids = Array.from({ length: 12 }, (_, at) => `response ${at}`);
  for (const [at, id] of ids.entries())
    await storeResponse(store, id, content, at === 0 ? null : (ids[at - 1] ?? null));
  turns.length = 0;
  bytes.length = 0;
  await store.responses.sweep({ at: expiresAt, limit: 100 });
  expect(bytes.at(-1)).toBe(0);
  const removed = bytes.slice(1).map((left, at) => (bytes[at] ?? 0) - left);
  // A response itself, and 1 MiB of the messages that were kept for it.
  expect(Math.max(...removed)).toBeLessThanOrEqual(content.length + 1_048_576);
  expect(new Set(turns).size).toBe(turns.length);
});

it("deletes only a few large responses in one transaction", async () => {
  const { store, turns, bytes } = await openStore();
  const ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
  for (const id of ids) await storeResponse(store, id, Buffer.alloc(600_000, "a"));
  turns.length = 0;
  bytes.length = 0;
  const deletions = ids.map((id) =>
    store.responses.delete({ owner, id, at: 0, leaf: leafOf("response.deleted", id) }),
  );
  expect(await Promise.all(deletions)).toEqual(ids.map(() => true));
  // Each overwrites 2.4 MB with its kept answer, so two of them exceed 4 MiB.
  expect(bytes).toEqual([3_600_000, 2_400_000, 1_200_000, 0]);
  expect(new Set(turns).size).toBe(4);
});

it("replaces few large expired claims at once", async () => {
  const { store, turns } = await openStore();
  const ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
  for (const id of ids) await storeResponse(store, id, Buffer.alloc(1_048_576, "a"));
  turns.length = 0;
  const openings = ids.map((id) => {
    const claim = { keySha256: digestHex(`key ${id}`), requestSha256: digestHex(id) };
    return store.openStep({ ...stepIntent(`again ${id}`), endpoint: "responses", claim });
  });
  expect((await Promise.all(openings)).filter(({ opened }) => opened)).toHaveLength(8);
  // Each overwrites an answer of 1 MiB, so four of them reach 4 MiB.
  expect(turns).toHaveLength(2);
});

it("removes no more than its limit, and one row that is larger than all it may remove at once", async () => {
  const { store } = await openStore();
  for (const id of ["a", "b", "c"]) await storeResponse(store, id, Buffer.alloc(600_000, "a"));
  expect(await store.responses.sweep({ at: expiresAt, limit: 2 })).toBe(2);
  expect(await store.responses.get(owner, "b", 0)).toBeNull();
  expect(await store.responses.get(owner, "c", 0)).not.toBeNull();
  expect(await store.responses.sweep({ at: expiresAt - 1, limit: 9 })).toBe(0);
  expect(await store.responses.sweep({ at: expiresAt, limit: 9 })).toBe(4);
});

function addOrganizations(database: DatabaseSync): void {
  database.exec(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
    INSERT INTO organizations (id, salt) SELECT 'organization ' || n, x'' FROM numbers`);
}

it("looks in turns for what many organizations no longer keep", async () => {
  const { store, database, turns } = await openStore();
  addOrganizations(database);
  const retention = { activity: "1d", transcripts: "1d" } as const;
  const { gateway } = await createTestGateway({ store, retention });
  turns.length = 0;
  expect(await gateway.sweep()).toBe(0);
  // One for the responses, and for Steps and for Sessions at least ten of 200 organizations.
  expect(new Set(turns).size).toBeGreaterThanOrEqual(21);
  await gateway.close();
});

it("looks in turns for leaves of many organizations to seal", async () => {
  const { store, database, reads } = await openStore();
  const signer = ed25519Signer({
    name: "gateway.example",
    privateKey: generateKeyPairSync("ed25519").privateKey,
  });
  const { gateway } = await createTestGateway({ store, evidence: { signer } });
  await gateway.evidence.seal();
  addOrganizations(database);
  database.exec(`INSERT INTO leaves (organization_id, id, kind, at, meta, hash)
      SELECT o.id, 'copy', l.kind, l.at, l.meta, l.hash
      FROM organizations o, leaves l WHERE o.id LIKE 'organization %' GROUP BY o.id;
    INSERT INTO checkpoints (organization_id, number, size, frontier, at, note, settled, since)
      SELECT o.id, c.number, c.size, c.frontier, c.at, c.note, 1000000000, c.since
      FROM organizations o, checkpoints c WHERE o.id LIKE 'organization %' GROUP BY o.id`);
  reads.length = 0;
  await gateway.evidence.seal();
  // Nothing is left to seal, and each read looks at 500 logs.
  expect(reads.length).toBeGreaterThanOrEqual(5);
  expect(new Set(reads).size).toBeGreaterThanOrEqual(5);
  await gateway.close();
});

it("looks in turns for the rows of many organizations", async () => {
  const { store, database, reads } = await openStore();
  await store.openStep(stepIntent("step"));
  addOrganizations(database);
  const all = { organizationId: null };
  const paging = { cursor: null, limit: 10 };
  const looks: Readonly<Record<string, () => Promise<unknown>>> = {
    keys: () => store.keys.list(all, paging),
    Sessions: () => store.sessions.list(all, paging),
    "Sessions of a key": () => store.sessions.list({ ...all, keyId: owner.keyId }, paging),
    Steps: () => store.steps.list(all, paging),
    "Steps of a user": () => store.steps.list({ ...all, userId: ["nobody"] }, paging),
    decisions: () => store.decisions.list(all, paging),
    "a sum": () => store.steps.summarize({ ...all, by: [] }, paging),
    "one key": () => store.keys.get(null, "nothing"),
    "one Step": () => store.steps.get(null, "nothing"),
    "contents of a Step": () => store.steps.contents(null, "nothing"),
    "one Session": () => store.sessions.get(null, "nothing"),
    "one transcript": () => store.sessions.transcript(null, "nothing"),
    "one decision": () => store.decisions.get(null, "nothing"),
  };
  for (const [name, look] of Object.entries(looks)) {
    reads.length = 0;
    await look();
    // At most a thousand organizations in each.
    expect(new Set(reads).size, name).toBeGreaterThanOrEqual(2);
  }
});
