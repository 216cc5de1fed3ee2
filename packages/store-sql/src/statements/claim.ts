import { columnsOf } from "../tables.ts";

/** Reads of claims on idempotency keys. */
export const claimStatements = {
  claim: `SELECT ${columnsOf("claims").join(", ")} FROM claims
    WHERE organization_id = :organization_id AND key_id = :key_id AND endpoint = :endpoint
      AND idempotency_key = :idempotency_key`,
  expired: `SELECT organization_id, key_id, endpoint, idempotency_key, step_id FROM claims
    WHERE expires_at <= :at
    ORDER BY expires_at, organization_id, key_id, endpoint, idempotency_key LIMIT :limit`,
} as const;
