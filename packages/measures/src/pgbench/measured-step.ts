import { createHash } from "node:crypto";
import { type Hold, leafHash, type Owner, type Store } from "@tollgate/core/store";
import { organizationId } from "../step-intents.ts";

/** When the measured Steps open, and what they hold. */
export interface MeasuredStep {
  readonly at: number;
  readonly holds: readonly Hold[];
}

/** Whose the measured Steps are. */
export const measuredOwner: Owner = { organizationId, userId: "user-0", keyId: "key-0" };

/** A hold on a budget that never runs out, which all Steps share. */
export const sharedHold: Hold = {
  budgetId: "shared",
  subject: "",
  periodStart: 0,
  unit: "tokens",
  mode: "hard",
  limit: Number.MAX_SAFE_INTEGER,
  amount: 470,
};

/** Writes the one key the measured Steps belong to. */
export function insertMeasuredKey(store: Store, at: number): Promise<void> {
  const meta = JSON.stringify({ kind: "key.created" });
  const digest = createHash("sha256").update("a secret").digest();
  return store.keys.insert({
    key: {
      ...measuredOwner,
      id: measuredOwner.keyId,
      label: "a key",
      prefix: "tg_abcd",
      defaultDataClass: "D1_INTERNAL",
      minimumDataClass: "D0_PUBLIC",
      models: null,
      createdAt: at,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
      version: 0,
    },
    digest,
    salt: digest,
    leaf: { id: "key", organizationId, kind: "key.created", at, meta, hash: leafHash(meta) },
  });
}
