import { endpointNames, type KeptAnswer } from "@tollgate/core/store";
import type { ClaimKey, ClaimName, ClaimRecord, SettledClaim } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";
import { fromHex, toHex } from "./session-row.ts";

/** The columns that find a claim. */
export function claimKeyToRow({
  organizationId,
  keyId,
  endpoint,
  keySha256,
}: ClaimKey): SqlParameters {
  return {
    organization_id: organizationId,
    key_id: keyId,
    endpoint,
    idempotency_key: fromHex(keySha256),
  };
}

/** The columns that find one Step's claim. */
export function claimNameToRow(name: ClaimName): SqlParameters {
  return { ...claimKeyToRow(name), step_id: name.stepId };
}

/** A claim as the parameters of its row. */
export function claimToRow(claim: ClaimRecord): SqlParameters {
  return {
    ...claimNameToRow(claim),
    request: fromHex(claim.requestSha256),
    decision_id: claim.decisionId,
    data_class: claim.dataClass,
    opened_at: claim.openedAt,
    state: claim.state,
    expires_at: claim.expiresAt,
    ...answerToRow(claim.answer),
  };
}

/** The columns of a claim's row that its Step's settlement changes. */
export function settledClaimToRow(name: ClaimName, ending: SettledClaim): SqlParameters {
  return {
    ...claimNameToRow(name),
    state: ending.state,
    expires_at: ending.expiresAt,
    ...answerToRow(ending.state === "kept" ? ending.answer : null),
  };
}

/** The columns of a claim's row that are changed to drop its answer. */
export function forgottenClaimToRow(name: ClaimName): SqlParameters {
  const state: ClaimRecord["state"] = "not_kept";
  return { ...claimNameToRow(name), state, ...answerToRow(null) };
}

function answerToRow(answer: KeptAnswer | null): SqlParameters {
  const headers = answer && JSON.stringify(answer.headers);
  return { model: answer?.model ?? null, headers, body: answer?.body ?? null };
}

const claimStates: readonly ClaimRecord["state"][] = [
  "in_progress",
  "interrupted",
  "not_kept",
  "kept",
];

/** The claim in a row. */
export function claimFromRow(row: unknown): ClaimRecord {
  const read = readRow(row);
  const headers = read.jsonOrNull<KeptAnswer["headers"]>("headers");
  return {
    ...claimNameFromRow(row),
    requestSha256: toHex(read.bytes("request")),
    decisionId: read.text("decision_id"),
    dataClass: read.text("data_class"),
    openedAt: read.integer("opened_at"),
    state: read.oneOf("state", claimStates),
    expiresAt: read.integerOrNull("expires_at"),
    answer: headers && { model: read.text("model"), headers, body: read.bytes("body") },
  };
}

/** The key and Step of a claim, in a row that may lack its other columns. */
export function claimNameFromRow(row: unknown): ClaimName {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    keyId: read.text("key_id"),
    endpoint: read.oneOf("endpoint", endpointNames),
    keySha256: toHex(read.bytes("idempotency_key")),
    stepId: read.text("step_id"),
  };
}
