import type { OneOrMany } from "../../domain/pattern.ts";
import type { ConnectionOwnership, Obligations } from "../../domain/policy-decision.ts";

/** Data classes from one up and up to one, in the configured order; both inclusive. */
export interface ClassRange {
  readonly from?: string;
  readonly upTo?: string;
}

/** What a rule applies to: every given member must match, and a list matches any of its values. */
export interface RuleMatch<Gateway extends string = string> extends ClassRange {
  readonly organization?: OneOrMany;
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly gateway?: OneOrMany<Gateway>;
  /** Model patterns such as `openai/openai/gpt-*`; `*` matches inside its part. ASCII case is ignored. */
  readonly model?: OneOrMany;
  /** Whether the gateway's configuration lists the model. */
  readonly listed?: boolean;
  readonly connection?: OneOrMany<ConnectionOwnership>;
  readonly source?: OneOrMany;
  /** The most sensitive class of the Session that the request continues. A new Session is below every class. */
  readonly session?: ClassRange;
  /** Whether the request uses tools, images or structured output. */
  readonly tools?: boolean;
  readonly images?: boolean;
  readonly structuredOutput?: boolean;
  /** Service tiers that are asked for, such as `priority`; `default` for the standard one. */
  readonly serviceTier?: OneOrMany;
}

/** Why a rule stands, and what its permit asks of the gateway. */
export interface RuleOptions extends Obligations {
  readonly reason?: string;
}

/** The options of a permit as it is written: the gateways its fallbacks name are part of the rule's type, too. */
export interface PermitOptions<Gateway extends string = string>
  extends Omit<RuleOptions, "fallbacks"> {
  /** Model ids to try in order when the first fails; each is decided and held anew. */
  readonly fallbacks?: readonly `${Gateway}/${string}`[];
}

/** One rule of a policy: plain data that can be written as JSON. */
export interface Rule<Gateway extends string = string> {
  readonly effect: "permit" | "forbid";
  readonly id: string;
  readonly match: RuleMatch<Gateway>;
  readonly options: RuleOptions;
}

/**
 * A rule that permits what it matches. Without a match it permits everything that no rule forbids.
 * `id` is recorded with every decision it determines.
 */
export function permit<const Gateway extends string = never>(
  id: string,
  match: RuleMatch<Gateway> = {},
  options: PermitOptions<Gateway> = {},
): Rule<NoInfer<Gateway>> {
  return { effect: "permit", id, match, options };
}

/** A rule that forbids what it matches, whatever else permits it. Its reason is told to the caller. */
export function forbid<const Gateway extends string = never>(
  id: string,
  match: RuleMatch<Gateway> = {},
  options: { readonly reason?: string } = {},
): Rule<NoInfer<Gateway>> {
  return { effect: "forbid", id, match, options };
}
