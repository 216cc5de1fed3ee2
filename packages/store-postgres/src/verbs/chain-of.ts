import { reading, readRow, type SessionRecord } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { chainSlice } from "./chain.ts";
import { lineageOf, type Stretch } from "./lineage-of.ts";

/** The chain values of a Session's whole history. */
export async function chainOf(
  transaction: Transaction,
  session: SessionRecord,
): Promise<Uint8Array> {
  const chains: Uint8Array[] = [];
  for (const stretch of await lineageOf(transaction, session))
    chains.push(...(await chainsOf(transaction, stretch)));
  return Buffer.concat(chains);
}

async function chainsOf(
  transaction: Transaction,
  { session, end }: Stretch,
): Promise<readonly Uint8Array[]> {
  const parts = await transaction.all(reading.chains, {
    organization_id: session.organizationId,
    session_id: session.id,
    end,
  });
  return parts.map(readRow).map((part) => {
    const kept = Math.min(part.integer("count"), end - part.integer("position"));
    return chainSlice(part.bytes("chain"), 0, kept);
  });
}
