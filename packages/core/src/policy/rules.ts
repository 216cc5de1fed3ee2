import { selectsModel } from "../domain/model-pattern.ts";
import type { Obligations } from "../domain/obligations.ts";
import { listed, type OneOrMany, selects } from "../domain/pattern.ts";
import type { ConnectionOwnership, PolicyFacts } from "../domain/policy-decision.ts";
import { tierOf } from "../domain/service-tier.ts";

/** A range of data classes in the configured order. Both ends are inclusive. */
export interface ClassRange {
  readonly from?: string;
  readonly upTo?: string;
}

/** The requests that a rule applies to. Every given member must match; a list matches any of its values. */
export interface RuleMatch<Gateway extends string = string> extends ClassRange {
  readonly organization?: OneOrMany;
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly gateway?: OneOrMany<Gateway>;
  /** Model patterns such as `openai/openai/gpt-*`. `*` matches inside its part. ASCII case is ignored. */
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
  /** Whether the request is for embeddings. */
  readonly embeddings?: boolean;
  /** The requested service tier, such as `priority`; `default` for the standard one. */
  readonly serviceTier?: OneOrMany;
}

/** The options of a rule: a reason, and the obligations of a permit. */
export interface RuleOptions extends Obligations {
  /** Recorded with the decision. Callers see the reason of a denial. */
  readonly reason?: string;
}

/** The options of `permit`. The gateways of its fallbacks are part of the rule's type. */
export interface PermitOptions<Gateway extends string = string>
  extends Omit<RuleOptions, "fallbacks"> {
  /** Model ids to try in order if the first one fails. Each gets its own decision and its own holds. */
  readonly fallbacks?: readonly `${Gateway}/${string}`[];
}

/** One rule of a policy: plain data that can be written as JSON. */
export interface Rule<Gateway extends string = string> {
  readonly effect: "permit" | "forbid";
  readonly id: string;
  /** Default: all requests. */
  readonly match?: RuleMatch<Gateway>;
  /** Default: none. */
  readonly options?: RuleOptions;
}

/** A rule with its defaults. */
export type CompleteRule = Required<Rule>;

/**
 * Permits requests that match. Without a match, it permits everything that no rule forbids. Decisions record the `id` of
 * each rule that determined them.
 */
export function permit<const Gateway extends string = never>(
  id: string,
  match: RuleMatch<Gateway> = {},
  options: PermitOptions<Gateway> = {},
): Rule<NoInfer<Gateway>> {
  return { effect: "permit", id, match, options };
}

/** Forbids requests that match, even if another rule permits them. Callers see the reason. */
export function forbid<const Gateway extends string = never>(
  id: string,
  match: RuleMatch<Gateway> = {},
  options: { readonly reason?: string } = {},
): Rule<NoInfer<Gateway>> {
  return { effect: "forbid", id, match, options };
}

/** Whether a rule applies to the facts. `dataClasses` is the order for `from` and `upTo`. */
export function matchesRule(
  match: RuleMatch,
  facts: PolicyFacts,
  dataClasses: readonly string[],
): boolean {
  const rank = (dataClass: string): number => dataClasses.indexOf(dataClass);
  const isIn = ({ from, upTo }: ClassRange, dataClass: string | undefined): boolean => {
    const actual = dataClass === undefined ? -1 : rank(dataClass);
    return (
      (from === undefined || actual >= rank(from)) && (upTo === undefined || actual <= rank(upTo))
    );
  };
  return (
    selects(match.organization, facts.organization) &&
    selects(match.user, facts.user) &&
    selects(match.key, facts.key) &&
    selects(match.gateway, facts.gateway) &&
    selects(match.connection, facts.connection) &&
    selects(match.source, facts.source) &&
    isIn(match, facts.dataClass) &&
    isIn(match.session ?? {}, facts.session?.dataClass) &&
    isSame(match.listed, facts.listed) &&
    isSame(match.tools, facts.tools) &&
    isSame(match.images, facts.images) &&
    isSame(match.structuredOutput, facts.structuredOutput) &&
    isSame(match.embeddings, facts.embeddings === true) &&
    (match.serviceTier === undefined ||
      listed(match.serviceTier).map(tierOf).includes(facts.serviceTier)) &&
    selectsModel(match.model, facts)
  );
}

function isSame(wanted: boolean | undefined, actual: boolean): boolean {
  return wanted === undefined || wanted === actual;
}
