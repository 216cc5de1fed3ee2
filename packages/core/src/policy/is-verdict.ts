import type { Obligations, Verdict } from "../domain/policy-decision.ts";
import { isTierName } from "../domain/service-tier.ts";

/** A function policy written in JavaScript can answer anything; what is no verdict must not permit. */
export function isVerdict(verdict: Verdict): boolean {
  return (
    (verdict?.effect === "permit" || verdict?.effect === "deny") &&
    isListOfText(verdict.rules) &&
    (verdict.reason === undefined || typeof verdict.reason === "string") &&
    (verdict.obligations === undefined || areObligations(verdict.obligations))
  );
}

function areObligations(obligations: Obligations): boolean {
  if (typeof obligations !== "object" || obligations === null) return false;
  const { fallbacks, maxOutputTokens, transcript, connection, serviceTier } = obligations;
  return (
    (fallbacks === undefined || isListOfText(fallbacks)) &&
    (maxOutputTokens === undefined ||
      (Number.isSafeInteger(maxOutputTokens) && maxOutputTokens > 0)) &&
    (serviceTier === undefined || isTierName(serviceTier)) &&
    [undefined, "full", "digest"].includes(transcript) &&
    [undefined, "customer"].includes(connection)
  );
}

function isListOfText(list: readonly string[]): boolean {
  return Array.isArray(list) && list.every((item) => typeof item === "string");
}
