import { UnsealError } from "../connections/credential-sealer.ts";
import type { SealedConnection } from "../domain/gateway-connection.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { connectionLeaf } from "./connection-leaf.ts";
import type { ResealResult } from "./connection-records.ts";

/** Credentials resealed at a time. */
const pageSize = 20;

/** Wraps anew what another key than the current one wraps, page by page; what another process does meanwhile stands. */
export async function resealConnections(
  line: GatewayContext,
  actor: string | undefined,
): Promise<ResealResult> {
  const { store, sealer } = line;
  if (sealer.current === "")
    throw new GatewayError("invalid_configuration", "There are no secrets to reseal with.");
  const query = { organizationId: null, notWrappedBy: sealer.current };
  let [resealed, failed] = [0, 0];
  let cursor: string | null = null;
  do {
    const page = await store.connections.list(query, { cursor, limit: pageSize });
    const outcomes = await Promise.all(page.data.map((one) => reseal(line, one, actor)));
    resealed += outcomes.filter((outcome) => outcome === "resealed").length;
    failed += outcomes.filter((outcome) => outcome === "failed").length;
    cursor = page.nextCursor;
  } while (cursor !== null);
  return { resealed, failed };
}

/** `changed`: set anew, removed or resealed by somebody else since it was read. */
async function reseal(
  line: GatewayContext,
  connection: SealedConnection,
  actor: string | undefined,
): Promise<"resealed" | "changed" | "failed"> {
  const to = await line.sealer.rewrap(connection).catch((thrown: unknown) => {
    if (thrown instanceof UnsealError) return null;
    throw thrown;
  });
  if (to === null) return "failed";
  const { organizationId, gateway, wrappedKey: from } = connection;
  const leaf = connectionLeaf(line, "connection.resealed", { ...connection, ...to, actor });
  return (await line.store.connections.rewrap({ organizationId, gateway, from, to, leaf }))
    ? "resealed"
    : "changed";
}
