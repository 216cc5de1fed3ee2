import type { CompletionRequest } from "../domain/completion-request.ts";
import type { Obligations } from "../domain/obligations.ts";
import type { ConnectionOwnership, PolicyDecision } from "../domain/policy-decision.ts";
import { tiersFor, tierToSend } from "../domain/service-tier.ts";
import type { OutputCapSource } from "../domain/step.ts";

/** The most output of an attempt. */
export interface OutputCap {
  readonly tokens: number;
  readonly from: OutputCapSource;
  /** Whether the policy requires a cap, so one must be sent upstream. */
  readonly isRequired: boolean;
}

/** A request with the service tier to send, and the tiers that may serve it. */
interface TieredRequest {
  readonly request: CompletionRequest;
  readonly serviceTiers: readonly string[];
}

/**
 * Meets the obligations of a permit, each in its own way. No other code of the line reads them, so the compiler names this
 * table when one is added.
 */
export const meet = {
  /** The model ids to try after the decided one. */
  fallbacks: ({ obligations }: PolicyDecision): readonly string[] => obligations?.fallbacks ?? none,

  /** The smaller of the attempt's own cap and the policy's. */
  maxOutputTokens({ obligations }: PolicyDecision, own: OutputCap): OutputCap {
    const tokens = obligations?.maxOutputTokens;
    if (tokens === undefined) return own;
    return tokens < own.tokens
      ? { tokens, from: "policy", isRequired: true }
      : { ...own, isRequired: true };
  },

  /** Whether to keep content, or only its digest. */
  transcript: ({ obligations }: PolicyDecision): "full" | "digest" =>
    obligations?.transcript ?? "full",

  /** The request with the policy's service tier. `auto` lists the tiers that a provider may choose by itself. */
  serviceTier(
    { obligations }: PolicyDecision,
    request: CompletionRequest,
    auto: readonly string[],
  ): TieredRequest {
    const { serviceTier: requested } = request;
    const sent = tierToSend(requested, { set: obligations?.serviceTier, auto });
    const serviceTiers = tiersFor(sent, auto);
    if (sent === requested) return { request, serviceTiers };
    const { serviceTier: _, ...rest } = request;
    return {
      request: sent === undefined ? rest : { ...rest, serviceTier: sent },
      serviceTiers,
    };
  },

  /** Whether an account of this owner may be used. */
  connection: ({ obligations }: PolicyDecision, owner: ConnectionOwnership): boolean =>
    obligations?.connection === undefined || owner === obligations.connection,
} satisfies Readonly<Record<keyof Obligations, unknown>>;

const none: readonly string[] = [];
