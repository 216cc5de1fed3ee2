import type { Obligations } from "../domain/policy-decision.ts";
import { standardTier, tierOf } from "../domain/service-tier.ts";

/**
 * Several permits oblige together: the smallest cap, digest before full, the first list of
 * fallbacks, the standard service tier before any other.
 */
export function strictest(all: readonly Obligations[]): Obligations {
  const caps = all.flatMap((one) => one.maxOutputTokens ?? []);
  const transcripts = all.flatMap((one) => one.transcript ?? []);
  const fallbacks = all.find((one) => one.fallbacks !== undefined)?.fallbacks;
  const tiers = all.flatMap((one) => one.serviceTier ?? []).map(tierOf);
  const [tier] = tiers.includes(standardTier) ? [standardTier] : tiers;
  return {
    ...(fallbacks === undefined ? {} : { fallbacks }),
    ...(caps.length === 0 ? {} : { maxOutputTokens: Math.min(...caps) }),
    ...(transcripts.length === 0
      ? {}
      : { transcript: transcripts.includes("digest") ? "digest" : "full" }),
    ...(tier === undefined ? {} : { serviceTier: tier }),
    ...(all.some((one) => one.connection === "customer") ? { connection: "customer" } : {}),
  };
}
