import type { GatewayConnection } from "../domain/gateway-connection.ts";
import type { WithActor } from "./key-records.ts";
import type { List, Paging } from "./list.ts";
import { type OrganizationScope, toIso } from "./tenant.ts";

/** A customer-owned connection as it is shown: that there is one, and never its credential. Times are ISO 8601. */
export interface ConnectionRecord extends Omit<GatewayConnection, "createdAt" | "updatedAt"> {
  readonly createdAt: string;
  /** When its credential was last set; resealing does not count. */
  readonly updatedAt: string;
}

/** An organization's connection to a gateway: there is at most one. */
export interface ConnectionReference {
  readonly organizationId: string;
  readonly gateway: string;
}

/** An organization's own Gateway API key for a customer-owned gateway. */
export interface SetConnectionOptions extends ConnectionReference, WithActor {
  /** 1 to 8,192 printable ASCII characters, no space at either end. It is sealed, and never read back. */
  readonly apiKey: string;
}

/** What resealing did. */
export interface ResealResult {
  /** Credentials whose data key the current key-encryption key wraps now. */
  readonly resealed: number;
  /** Those whose data key could not be unwrapped, or not wrapped anew: they are as they were. */
  readonly failed: number;
}

/** Customer-owned connections: the Gateway API keys that organizations bring themselves (section 5.1). */
export interface Connections {
  /**
   * Seals an organization's credential, in place of the one it has. Holds for the next request in this process, and for
   * every other process within 5 seconds; where there was none, at once.
   * @throws GatewayError `invalid_argument`, or `connection_unavailable` where the key-encryption key does not answer
   */
  set(setting: SetConnectionOptions): Promise<ConnectionRecord>;
  /** @throws GatewayError `connection_not_found` */
  get(reference: ConnectionReference): Promise<ConnectionRecord>;
  /** By organization and gateway. */
  list(filter: OrganizationScope, paging?: Paging): List<ConnectionRecord>;
  /**
   * Forgets the credential. Requests that begin 5 seconds later, in whichever process, are refused; running ones finish.
   * @throws GatewayError `connection_not_found`
   */
  remove(reference: ConnectionReference & WithActor): Promise<void>;
  /**
   * Wraps every data key anew that another key-encryption key than the current one wraps. Safe from several processes at
   * once and while requests run; what failed can be tried again. When nothing failed, the old key can go.
   * @throws GatewayError `invalid_configuration` without `secrets`
   */
  reseal(acting?: WithActor): Promise<ResealResult>;
}

export function toConnectionRecord(connection: GatewayConnection): ConnectionRecord {
  const { id, organizationId, gateway, createdAt, updatedAt, keyId } = connection;
  return {
    id,
    organizationId,
    gateway,
    createdAt: toIso(createdAt),
    updatedAt: toIso(updatedAt),
    keyId,
  };
}
