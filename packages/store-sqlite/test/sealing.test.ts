import { generateKeyPairSync } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { ed25519Signer, everyOrganization } from "@tollgate/core";
import { leafHash } from "@tollgate/core/store";
import { createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";
import { sqliteStore } from "../src/index.ts";

const organizationId = "organization-1";
const { privateKey } = generateKeyPairSync("ed25519");
const signer = ed25519Signer({ name: "gateway.example", privateKey });

/** A gateway with a sealed log, and its database for someone with all rights on it. */
async function sealedLog() {
  const client = new DatabaseSync(":memory:");
  const test = await createTestGateway({ store: sqliteStore({ client }), evidence: { signer } });
  await test.gateway.fetch(test.chat());
  await test.gateway.evidence.seal();
  const createKey = async (): Promise<void> => {
    const owner = { organizationId, userId: "mallory", label: "mallory", actor: "mallory" };
    await test.gateway.keys.create(owner);
  };
  const problems = async (): Promise<readonly (string | null)[]> => {
    const logs = await test.gateway.evidence.verify({ organizationId: everyOrganization });
    return logs.map(({ problem }) => problem?.message ?? null);
  };
  return { ...test, client, createKey, problems };
}

function insertLeaf(client: DatabaseSync, organization: string, sequence: number, at: number) {
  const meta = JSON.stringify({ at, id: "forged", kind: "key.revoked", organization });
  client
    .prepare(
      `INSERT INTO leaves (organization_id, sequence, id, kind, at, meta, hash)
        VALUES (?, ?, 'forged', 'key.revoked', ?, ?, ?)`,
    )
    .run(organization, sequence, at, meta, leafHash(meta));
}

it("finds a leaf that someone declared sealed before it was written", async () => {
  const { gateway, chat, client, clock, createKey, problems } = await sealedLog();
  client.exec("UPDATE checkpoints SET settled = (SELECT max(sequence) FROM leaves) + 2");
  await createKey();
  await gateway.fetch(chat());
  await gateway.evidence.seal();
  await clock.advance("2m");
  await gateway.fetch(chat());
  await gateway.evidence.seal();
  expect(await problems()).toEqual([null, expect.stringContaining("that should be sealed")]);
});

it("finds that no log grows any more", async () => {
  const { gateway, chat, client, clock, problems } = await sealedLog();
  client.exec("UPDATE checkpoints SET settled = 1000000000");
  const hold = async (): Promise<void> => {
    await gateway.fetch(chat());
    await clock.advance("2m");
    await gateway.evidence.seal();
  };
  for (let round = 0; round < 3; round++) await hold();
  const found = "leaves that should be sealed aren't";
  expect(await problems()).toEqual([null, expect.stringContaining(found)]);
});

it("finds leaves that someone inserted among the sealed ones", async () => {
  const { gateway, chat, client, clock, problems } = await sealedLog();
  const at = clock.now();
  insertLeaf(client, organizationId, 0, at);
  await gateway.fetch(chat());
  await gateway.evidence.seal();
  expect(await problems()).toEqual([null, null]);
  await clock.advance("2m");
  await gateway.fetch(chat());
  await gateway.evidence.seal();
  const time = new Date(at).toISOString();
  const found = `1 leaf that should be sealed isn't: it was written at ${time}`;
  expect(await problems()).toEqual([null, found]);
  insertLeaf(client, organizationId, -5, clock.now() + 1_000_000);
  const both = `2 leaves that should be sealed aren't: the first was written at ${time}`;
  expect((await problems())[1]).toBe(both);
});

it.each([1_000_000_000, -1])("finds a leaf that someone gave the index %i", async (index) => {
  const { gateway, chat, client, clock, createKey, problems } = await sealedLog();
  await createKey();
  const insert = client.prepare(
    `INSERT INTO sealed_leaves (organization_id, number, sequence)
      SELECT organization_id, ?, max(sequence) FROM leaves WHERE organization_id = ?`,
  );
  insert.run(index, organizationId);
  await clock.advance("2m");
  await gateway.fetch(chat());
  await gateway.evidence.seal();
  expect(await problems()).toEqual([
    null,
    expect.stringContaining("1 leaf that should be sealed isn't"),
  ]);
});

it("finds an organization whose leaves are all kept out of a log", async () => {
  const { gateway, chat, client, clock, problems } = await sealedLog();
  insertLeaf(client, "other", -5, clock.now());
  client.exec("INSERT INTO sealed_leaves VALUES ('other', 1000000000, -5)");
  await clock.advance("2m");
  await gateway.fetch(chat());
  await gateway.evidence.seal().catch(() => {});
  expect(await problems()).toEqual([null, null, expect.stringContaining("1 leaf that should")]);
});
