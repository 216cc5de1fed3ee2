import type { KeyWithSalt } from "../contracts/key-repository.ts";
import type { NamedCaller } from "../identity/named-caller.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { newKey } from "./new-key.ts";

/**
 * The key's record without a secret of a caller whom the host named, made where there is none. It demands nothing by
 * itself: what the host says of the caller holds beside what an administrator makes of the record.
 */
export function ensureKey(
  line: GatewayContext,
  { organizationId, userId, label }: NamedCaller,
): Promise<KeyWithSalt> {
  return line.store.keys.ensure(newKey(line, { organizationId, userId, label }, ""));
}
