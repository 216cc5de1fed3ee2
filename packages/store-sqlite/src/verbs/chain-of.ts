import { reading, readRow, type SessionRecord } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { chainSlice } from "./chain.ts";
import { lineageOf, type Stretch } from "./lineage-of.ts";

/** The chain values of a Session's whole history. */
export function chainOf(
  connection: Pick<Connection, "get" | "all">,
  session: SessionRecord,
): Uint8Array {
  return Buffer.concat(
    lineageOf(connection, session).flatMap((stretch) => chainsOf(connection, stretch)),
  );
}

function chainsOf(
  connection: Pick<Connection, "get" | "all">,
  { session, end }: Stretch,
): readonly Uint8Array[] {
  const parts = connection.all(reading.chains, {
    organization_id: session.organizationId,
    session_id: session.id,
    end,
  });
  return parts.map(readRow).map((part) => {
    const kept = Math.min(part.integer("count"), end - part.integer("position"));
    return chainSlice(part.bytes("chain"), 0, kept);
  });
}
