import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createGateway } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";
import { countingIds, scriptedProvider } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventLog } from "./event-log.ts";
import { type OwnGateways, openOwnGateways } from "./own-gateways.ts";
import { turnsWithChanges } from "./turns.ts";
import { failureOf } from "./wire.ts";

const acme = { organizationId: "organization-1", gateway: "own" };
const globex = { organizationId: "globex", gateway: "own" };
const keyOf = (text: string) => Buffer.alloc(32, text).toString("base64");
const k1 = keyOf("one");
const k2 = keyOf("two");

/** Gateways on one SQLite file, and a way to run SQL statements on it as an attacker could. */
function onFile() {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-sealing-"));
  const filename = join(folder, "tollgate.db");
  let series = 0;
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return {
    async open(secrets = { current: "k1", keys: { k1 } as Readonly<Record<string, string>> }) {
      const log = eventLog();
      const test = await openOwnGateways({
        store: sqliteStore({ filename }),
        secrets,
        observers: log.observers,
        ids: countingIds(++series),
      });
      onTestFinished(() => test.gateway.close());
      const other = await test.createKey({ organizationId: "globex" });
      return { ...test, log, other };
    },
    tamper(...statements: readonly string[]) {
      const database = new DatabaseSync(filename);
      for (const statement of statements) database.exec(statement);
      database.close();
    },
  };
}

type Opened = Awaited<ReturnType<ReturnType<typeof onFile>["open"]>>;

async function setBoth({ gateway }: OwnGateways): Promise<void> {
  await gateway.connections.set({ ...acme, apiKey: "sk-acme" });
  await gateway.connections.set({ ...globex, apiKey: "sk-globex" });
}

/** The answer to a request on `own`: its status and code. */
async function ask(test: Opened, chat = test.chat, gateway = "own"): Promise<string> {
  const answer = await test.clock.until(test.gateway.fetch(chat({ model: `${gateway}/a/b` })));
  return answer.ok ? `${answer.status}` : `${answer.status} ${(await failureOf(answer)).code}`;
}

const reasonsOf = ({ log }: Opened) =>
  log.seen.flatMap((event) =>
    event.type === "connection.unavailable" ? [`${event.organizationId} ${event.reason}`] : [],
  );

const swapped = (columns: readonly string[]) =>
  `UPDATE connections SET ${columns.map((column) => `${column} = theirs.${column}`).join(", ")}
   FROM (SELECT * FROM connections) AS theirs
   WHERE theirs.gateway = connections.gateway AND theirs.organization_id <> connections.organization_id`;

describe("sealed credentials (S36)", () => {
  it.each([
    ["whole", ["id", "key_id", "wrapped_key", "credential"]],
    ["without their ids", ["key_id", "wrapped_key", "credential"]],
    ["ciphertexts alone", ["credential"]],
    ["data keys alone", ["wrapped_key"]],
  ])("can't be decrypted after a swap between organizations, %s", async (_name, columns) => {
    const file = onFile();
    const test = await file.open();
    await setBoth(test);
    file.tamper(swapped(columns));
    expect(await ask(test)).toBe("503 connection_unavailable");
    expect(await ask(test, test.other.chat)).toBe("503 connection_unavailable");
    expect(test.upstream.calls).toEqual([]);
    const reason = columns.includes("wrapped_key") ? "key_unavailable" : "credential_damaged";
    expect(reasonsOf(test)).toEqual([`organization-1 ${reason}`, `globex ${reason}`]);
  });

  it("can't be decrypted when copied to another gateway of the same organization", async () => {
    const file = onFile();
    const test = await file.open();
    await setBoth(test);
    file.tamper(
      `INSERT INTO connections SELECT organization_id, 'spare', id, created_at, updated_at, key_id,
         wrapped_key, credential FROM connections WHERE organization_id = 'organization-1'`,
    );
    expect(await ask(test, test.chat, "spare")).toBe("503 connection_unavailable");
    expect(await ask(test)).toBe("200");
    expect(test.credentials()).toEqual(["own sk-acme"]);
  });

  it.each([
    ["a changed ciphertext", "credential = CAST(x'01' || zeroblob(40) AS BLOB)"],
    ["an empty ciphertext", "credential = x''"],
    ["a format of another release", "credential = CAST(x'02' || substr(credential, 2) AS BLOB)"],
    ["an empty data key", "wrapped_key = x''"],
    ["a longer data key", "wrapped_key = CAST(wrapped_key || x'00' AS BLOB)"],
    ["the name of another key", "key_id = 'k9'"],
    ["the name of an unknown key", "key_id = '__proto__'"],
  ])("with %s can't be decrypted, which affects only that organization", async (_name, change) => {
    const file = onFile();
    const test = await file.open();
    await setBoth(test);
    file.tamper(`UPDATE connections SET ${change} WHERE organization_id = 'globex'`);
    expect(await ask(test, test.other.chat)).toBe("503 connection_unavailable");
    expect(test.upstream.calls).toEqual([]);
    expect(await ask(test)).toBe("200");
    await test.gateway.connections.set({ ...globex, apiKey: "sk-again" });
    expect(await ask(test, test.other.chat)).toBe("200");
    expect(test.credentials()).toEqual(["own sk-acme", "own sk-again"]);
  });
});

describe("a key-encryption key", () => {
  it("that is lost disables only the gateways whose credentials it wraps (F49)", async () => {
    const file = onFile();
    const before = await file.open({ current: "k1", keys: { k1 } });
    await before.gateway.connections.set({ ...acme, apiKey: "sk-acme" });
    await before.gateway.close();
    const test = await file.open({ current: "k2", keys: { k2 } });
    await test.gateway.connections.set({ ...globex, apiKey: "sk-globex" });
    const mine = await test.createKey();
    expect(await ask(test, mine.chat)).toBe("503 connection_unavailable");
    expect(await ask(test, test.other.chat)).toBe("200");
    const platform = await test.gateway.fetch(mine.chat());
    expect(platform.status).toBe(200);
    expect(test.credentials()).toEqual(["own sk-globex"]);
    expect(test.log.seen).toContainEqual({
      type: "connection.unavailable",
      at: expect.any(Number),
      ...acme,
      connectionId: expect.any(String),
      keyId: "k1",
      reason: "key_unavailable",
    });
    const { data } = await test.gateway.steps.list({ ...acme, outcome: "failed" });
    expect(data).toMatchObject([
      { reason: "connection_unavailable", costNanoUsd: 0, attempts: [{ host: null }] },
    ]);
  });

  it("with the same name but other bytes decrypts nothing", async () => {
    const file = onFile();
    const before = await file.open();
    await before.gateway.connections.set({ ...acme, apiKey: "sk-acme" });
    await before.gateway.close();
    const test = await file.open({ current: "k1", keys: { k1: k2 } });
    expect(await ask(test, (await test.createKey()).chat)).toBe("503 connection_unavailable");
  });

  it("can be rotated: the new one wraps everything once, and the old one can go", async () => {
    const file = onFile();
    const before = await file.open({ current: "k1", keys: { k1 } });
    for (let at = 0; at < 45; at++)
      await before.gateway.connections.set({
        organizationId: `organization-${at}`,
        gateway: at % 2 === 0 ? "own" : "spare",
        apiKey: `sk-${at}`,
      });
    const both = await file.open({ current: "k2", keys: { k1, k2 } });
    await both.gateway.connections.set({ ...globex, apiKey: "sk-globex" });
    const resealed = both.gateway.connections.reseal({ actor: "ops" });
    // The process does other work after every 20 of them.
    expect(await turnsWithChanges(both.gateway, () => resealed)).toBe(3);
    expect(await resealed).toEqual({ resealed: 45, failed: 0 });
    expect(await both.gateway.connections.reseal()).toEqual({ resealed: 0, failed: 0 });
    const paging = { cursor: null, limit: 9 };
    const leaves = await both.store.evidence.list({ organizationId: "organization-0" }, paging);
    expect(leaves.data.map(({ kind, meta }) => [kind, JSON.parse(meta)])).toMatchObject([
      ["connection.set", { actor: null, wrappedBy: "k1" }],
      ["connection.resealed", { actor: "ops", wrappedBy: "k2" }],
    ]);
    const after = await file.open({ current: "k2", keys: { k2 } });
    const { chat } = await after.createKey({ organizationId: "organization-44" });
    expect(await ask(after, chat)).toBe("200");
    expect(after.credentials()).toEqual(["own sk-44"]);
    const { data } = await after.gateway.connections.list({ organizationId: "organization-44" });
    expect(data).toMatchObject([
      { keyId: "k2", createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T00:00:00.000Z" },
    ]);
  });

  it("that is lost is reported by resealing, which still does all others", async () => {
    const file = onFile();
    const before = await file.open({ current: "k1", keys: { k1 } });
    await before.gateway.connections.set({ ...acme, apiKey: "sk-acme" });
    const lost = await file.open({ current: "k3", keys: { k3: keyOf("three") } });
    await lost.gateway.connections.set({ ...globex, apiKey: "sk-globex" });
    const test = await file.open({ current: "k2", keys: { k1, k2 } });
    expect(await test.gateway.connections.reseal()).toEqual({ resealed: 1, failed: 1 });
    expect(await test.gateway.connections.get(acme)).toMatchObject({ keyId: "k2" });
    expect(await test.gateway.connections.get(globex)).toMatchObject({ keyId: "k3" });
  });

  it("is required for resealing, as is a valid actor", async () => {
    const without = createGateway({
      store: memoryStore(),
      providers: { test: scriptedProvider() },
    });
    await expect(without.connections.reseal()).rejects.toMatchObject({
      code: "invalid_configuration",
    });
    const { gateway } = await openOwnGateways();
    await expect(gateway.connections.reseal({ actor: "" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
