import type { EvidenceLeaf, LeafKind, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { user } from "./chain.ts";
import { type ContractSubject, type ContractTest, expectOpened } from "./contract-test.ts";

const first = { cursor: null, limit: 100 };

/** The leaves of administrative changes, and the latest policy. */
export function changeTests(test: ContractTest): void {
  test("lists the leaves of administrative changes, newest first, without those of requests", async ({
    store,
    intents,
  }) => {
    const step = intents.step([user("a")]);
    await expectOpened(store.openStep(step));
    await store.settleStep(intents.settlement(step));
    await store.recordRefusal(intents.refusal());
    const revoked = await revoke({ store, intents });
    const { data } = await store.evidence.changes({ organizationId: "acme" }, first);
    expect(data.map(({ kind }) => kind)).toEqual(["key.revoked", "key.created"]);
    expect(data[0]).toMatchObject({ id: revoked.id, meta: revoked.meta });
  });

  test("finds changes by organization, kind and time", async (subject) => {
    const { store, intents } = subject;
    const stranger = intents.withOwner({ organizationId: "other" }).key();
    await store.keys.insert(stranger);
    const revoked = await revoke(subject);
    const found = async (query: Parameters<Store["evidence"]["changes"]>[0]) =>
      (await store.evidence.changes(query, first)).data.map(({ id }) => id);
    const everyone = await found({ organizationId: null });
    expect(everyone).toHaveLength(3);
    expect(everyone.slice(0, 2)).toEqual([revoked.id, stranger.leaf.id]);
    expect(await found({ organizationId: "other" })).toEqual([stranger.leaf.id]);
    for (const query of [{ kind: ["key.revoked", "correction"] }, { from: revoked.at }])
      expect(await found({ organizationId: null, ...query })).toEqual([revoked.id]);
    expect(await found({ organizationId: null, to: stranger.leaf.at })).toHaveLength(1);
    expect(await found({ organizationId: null, kind: ["decision"] })).toEqual([]);
  });

  test("records a new policy and its leaf once, however many processes report it", async ({
    store,
  }) => {
    const leaves: EvidenceLeaf[] = [];
    const note = (version: string) =>
      store.evidence.notePolicy({
        version,
        leaf: (before) => {
          const leaf = policyLeaf(`${before} to ${version} ${leaves.length}`);
          leaves.push(leaf);
          return leaf;
        },
      });
    await Promise.all([note("a"), note("a"), note("a")]);
    await note("b");
    await note("b");
    await note("a");
    const { data } = await store.evidence.changes(
      { organizationId: "", kind: ["policy.changed"] },
      first,
    );
    expect(data.map(({ id }) => id.replace(/ \d+$/, ""))).toEqual([
      "b to a",
      "a to b",
      "null to a",
    ]);
  });
}

async function revoke({ store, intents }: ContractSubject): Promise<EvidenceLeaf> {
  const leaf = intents.leaf("key.revoked");
  const { organizationId, keyId: id } = intents.owner;
  await store.keys.change({ organizationId, id }, () => ({
    patch: { revokedAt: intents.now() },
    leaf,
  }));
  return leaf;
}

function policyLeaf(id: string): EvidenceLeaf {
  const kind: LeafKind = "policy.changed";
  return { id, organizationId: "", kind, at: 1, meta: "{}", hash: new Uint8Array(32) };
}
