import type { AdminToken, EvidenceLeaf } from "@tollgate/core/store";
import { leafHash } from "@tollgate/core/store";
import { expect } from "vitest";
import type { ContractTest } from "./contract-test.ts";

const at = 1_767_225_600_000;

function tokenOf(number: number, rest: Partial<AdminToken> = {}): AdminToken {
  return {
    id: `token-${number}`,
    label: `operator ${number}`,
    prefix: "tga_abcd",
    role: "operator",
    organizations: ["acme", "rival"],
    transcripts: { upTo: "D1_INTERNAL" },
    createdAt: at + number,
    expiresAt: at + 1_000,
    revokedAt: null,
    lastUsedAt: null,
    ...rest,
  };
}

function leafOf(id: string, kind: EvidenceLeaf["kind"]): EvidenceLeaf {
  const meta = JSON.stringify({ id });
  return { id, organizationId: "", kind, at, meta, hash: leafHash(meta) };
}

const digestOf = (number: number): Uint8Array => new Uint8Array(32).fill(number);

function entryOf(number: number, rest: Partial<AdminToken> = {}) {
  const leaf = leafOf(`created-${number}`, "admin_token.created");
  return { token: tokenOf(number, rest), digest: digestOf(number), leaf };
}

/** Tokens for the admin API. */
export function adminTokenTests(test: ContractTest): void {
  test("finds a token by the digest of its secret, and lists tokens newest first", async ({
    store: { adminTokens },
  }) => {
    const ofAll = { organizations: "all", transcripts: null } as const;
    await adminTokens.insert(entryOf(1));
    await adminTokens.insert(entryOf(2, ofAll));
    expect(await adminTokens.findByDigest(digestOf(1))).toEqual(tokenOf(1));
    expect(await adminTokens.findByDigest(digestOf(9))).toBeNull();
    expect(await adminTokens.get("token-2")).toEqual(tokenOf(2, ofAll));
    expect(await adminTokens.get("token-9")).toBeNull();
    const first = await adminTokens.list({ cursor: null, limit: 1 });
    expect(first.data).toEqual([tokenOf(2, ofAll)]);
    expect(await adminTokens.list({ cursor: first.nextCursor, limit: 1 })).toEqual({
      data: [tokenOf(1)],
      nextCursor: null,
    });
  });

  test("writes a token once, and no second one for a digest", async ({ store }) => {
    const { adminTokens } = store;
    await adminTokens.insert(entryOf(1));
    await adminTokens.insert({ ...entryOf(1, { role: "admin" }), digest: digestOf(3) });
    await adminTokens.insert({ ...entryOf(2), digest: digestOf(1) });
    expect((await adminTokens.list({ cursor: null, limit: 9 })).data).toEqual([tokenOf(1)]);
    expect(await adminTokens.findByDigest(digestOf(3))).toBeNull();
    const kind = ["admin_token.created"] as const;
    const changes = { organizationId: null, kind };
    const { data } = await store.evidence.changes(changes, { cursor: null, limit: 9 });
    expect(data.map(({ id }) => id)).toEqual(["created-1"]);
  });

  test("revokes a token once, in the transaction of its leaf", async ({ store }) => {
    const { adminTokens, evidence } = store;
    await adminTokens.insert(entryOf(1));
    const revoke = (id: string, by: string) =>
      adminTokens.revoke({ id, at: at + 5, leaf: leafOf(by, "admin_token.revoked") });
    expect(await revoke("token-9", "nobody")).toBe(false);
    expect(await revoke("token-1", "first")).toBe(true);
    expect(await revoke("token-1", "second")).toBe(false);
    const revoked = tokenOf(1, { revokedAt: at + 5 });
    expect(await adminTokens.findByDigest(digestOf(1))).toEqual(revoked);
    const changes = { organizationId: null, kind: ["admin_token.revoked"] as const };
    const { data } = await evidence.changes(changes, { cursor: null, limit: 9 });
    expect(data.map(({ id }) => id)).toEqual(["first"]);
  });

  test("notes when a token was last used, and never an earlier time", async ({
    store: { adminTokens },
  }) => {
    await adminTokens.insert(entryOf(1));
    for (const used of [at + 20, at + 10]) await adminTokens.touch({ id: "token-1", at: used });
    await adminTokens.touch({ id: "token-9", at });
    expect(await adminTokens.get("token-1")).toEqual(tokenOf(1, { lastUsedAt: at + 20 }));
  });
}
