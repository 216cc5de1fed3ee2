import type { BudgetSnapshot } from "../budgets/budget-cache.ts";
import { type HoldTemplates, holdTemplates, type Spender } from "../budgets/holds.ts";
import type { Policy } from "../contracts/policy.ts";
import type { StepIntent } from "../contracts/step-verbs.ts";
import type { Caller } from "../domain/caller.ts";
import type { LeafTemplate } from "../domain/leaf-template.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { type LeafTexts, leafTextsOf, openedLeaf } from "../evidence/leaves.ts";
import { decide } from "../policy/decide.ts";
import type { ModelRoute } from "../routing/route.ts";

/** The policy, and the order of data classes. */
interface DecisionRules {
  readonly policy: Policy;
  readonly dataClasses: readonly string[];
}

/** The caller, the route and the facts of one call. */
interface DecisionInput {
  readonly caller: Caller;
  readonly route: ModelRoute;
  readonly facts: PolicyFacts;
}

/**
 * The part of a decision that is the same for all calls of a caller on a route that differ only in their text. It
 * consists of the verdict of a policy that ignores estimates, of the holds without their amounts, and of most of the leaf's
 * text. A change of the key creates a new caller object, and a change of budgets a new snapshot. The cache compares both by
 * identity, so it never returns an outdated entry.
 */
export class CachedDecision {
  readonly #deciding: DecisionRules;
  readonly #input: DecisionInput;
  #verdict: Verdict | null = null;
  #holds: { readonly snapshot: BudgetSnapshot; readonly templates: HoldTemplates } | null = null;
  #texts: LeafTexts | null = null;

  constructor(rules: DecisionRules, input: DecisionInput) {
    this.#deciding = rules;
    this.#input = input;
  }

  /** Whether this entry applies to a call of the same caller. */
  matches({ route, facts }: DecisionInput): boolean {
    const own = this.#input.facts;
    return (
      this.#input.route === route &&
      own.dataClass === facts.dataClass &&
      own.session?.dataClass === facts.session?.dataClass &&
      own.serviceTier === facts.serviceTier &&
      own.tools === facts.tools &&
      own.images === facts.images &&
      own.structuredOutput === facts.structuredOutput &&
      own.embeddings === facts.embeddings &&
      own.store === facts.store
    );
  }

  verdictFor(facts: PolicyFacts): Verdict {
    if (this.#verdict !== null) return this.#verdict;
    const { policy, dataClasses } = this.#deciding;
    const { allowlists } = this.#input.caller;
    const verdict = decide(policy, facts, { allowlists, dataClasses });
    if (policy.ignoresEstimates === true) this.#verdict = verdict;
    return verdict;
  }

  holdsFor(snapshot: BudgetSnapshot, at: number): HoldTemplates {
    const known = this.#holds;
    if (known?.snapshot === snapshot && known.templates.from <= at && at < known.templates.until)
      return known.templates;
    const { caller, route } = this.#input;
    const { organizationId, userId, keyId } = caller;
    const { model, connection } = route;
    const spender: Spender = { organizationId, userId, keyId, model, connection };
    const templates = holdTemplates(snapshot, spender, at);
    this.#holds = { snapshot, templates };
    return templates;
  }

  /** The leaf of a Step that opens with this decision. */
  leafFor(id: string, intent: Omit<StepIntent, "leaf">): LeafTemplate {
    this.#texts = leafTextsOf(intent, this.#texts);
    return openedLeaf(id, intent, this.#texts);
  }
}

/** The most recent entries. */
export interface DecisionCache {
  entryFor(input: DecisionInput): CachedDecision;
}

const maxPerCaller = 16;
const maxCached = 10_000;

/** Keeps the most recent entries of each caller. When there are too many in total, starts over empty. */
export function createDecisionCache(rules: DecisionRules): DecisionCache {
  let grounds = new WeakMap<Caller, CachedDecision[]>();
  let count = 0;
  return {
    entryFor(input) {
      const known = grounds.get(input.caller) ?? [];
      const found = known.find((cached) => cached.matches(input));
      if (found) return found;
      const cached = new CachedDecision(rules, input);
      if (++count > maxCached) {
        grounds = new WeakMap();
        count = 1;
      }
      if (known.length === maxPerCaller) known.shift();
      known.push(cached);
      grounds.set(input.caller, known);
      return cached;
    },
  };
}
