import type { Obligations } from "../domain/policy-decision.ts";

/** Several permits oblige together: the smallest cap, digest before full, the first list of fallbacks. */
export function strictest(all: readonly Obligations[]): Obligations {
  const caps = all.flatMap((one) => one.maxOutputTokens ?? []);
  const transcripts = all.flatMap((one) => one.transcript ?? []);
  const fallbacks = all.find((one) => one.fallbacks !== undefined)?.fallbacks;
  return {
    ...(fallbacks === undefined ? {} : { fallbacks }),
    ...(caps.length === 0 ? {} : { maxOutputTokens: Math.min(...caps) }),
    ...(transcripts.length === 0
      ? {}
      : { transcript: transcripts.includes("digest") ? "digest" : "full" }),
    ...(all.some((one) => one.connection === "customer") ? { connection: "customer" } : {}),
  };
}
