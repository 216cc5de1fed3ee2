import type { BudgetSnapshot } from "../budgets/budget-cache.ts";
import { type HoldTemplates, holdTemplates, type Spender } from "../budgets/holds.ts";
import type { Policy } from "../contracts/policy.ts";
import type { Caller } from "../domain/caller.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { decide } from "../policy/decide.ts";
import type { ModelRoute } from "../routing/route.ts";

/** What decides, the same for all calls. */
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
 * What is the same for all calls of a caller on a route that differ only in their text: the verdict of a policy that ignores
 * estimates, and the holds but for their amounts. A caller is read again when its key changes and the sheet when budgets do:
 * both are other objects then, and what was found for them is not found by the new ones.
 */
export class CachedDecision {
  readonly #deciding: DecisionRules;
  readonly #asked: DecisionInput;
  #verdict: Verdict | null = null;
  #holds: { readonly snapshot: BudgetSnapshot; readonly standing: HoldTemplates } | null = null;

  constructor(deciding: DecisionRules, asked: DecisionInput) {
    this.#deciding = deciding;
    this.#asked = asked;
  }

  /** Whether it is the ground of calls like this one, of the same caller. */
  isOf({ route, facts }: DecisionInput): boolean {
    const own = this.#asked.facts;
    return (
      this.#asked.route === route &&
      own.dataClass === facts.dataClass &&
      own.session?.dataClass === facts.session?.dataClass &&
      own.serviceTier === facts.serviceTier &&
      own.tools === facts.tools &&
      own.images === facts.images &&
      own.structuredOutput === facts.structuredOutput &&
      own.store === facts.store
    );
  }

  verdictOn(facts: PolicyFacts): Verdict {
    if (this.#verdict !== null) return this.#verdict;
    const { policy, dataClasses } = this.#deciding;
    const { allowlists } = this.#asked.caller;
    const verdict = decide(policy, facts, { allowlists, dataClasses });
    if (policy.ignoresEstimates === true) this.#verdict = verdict;
    return verdict;
  }

  holdsWithin(snapshot: BudgetSnapshot, at: number): HoldTemplates {
    const known = this.#holds;
    if (known?.snapshot === snapshot && known.standing.from <= at && at < known.standing.until)
      return known.standing;
    const { caller, route } = this.#asked;
    const { organizationId, userId, keyId } = caller;
    const { model, connection } = route;
    const spender: Spender = { organizationId, userId, keyId, model, connection };
    const standing = holdTemplates(snapshot.budgets, spender, at);
    this.#holds = { snapshot, standing };
    return standing;
  }
}

/** The grounds that were found lately. */
export interface DecisionCache {
  of(asked: DecisionInput): CachedDecision;
}

const maxPerCaller = 16;
const maxCached = 10_000;

/** Each caller's latest grounds, and so many of all callers: then it begins again with none. */
export function createDecisionCache(deciding: DecisionRules): DecisionCache {
  let grounds = new WeakMap<Caller, CachedDecision[]>();
  let count = 0;
  return {
    of(asked) {
      const known = grounds.get(asked.caller) ?? [];
      const found = known.find((cached) => cached.isOf(asked));
      if (found) return found;
      const cached = new CachedDecision(deciding, asked);
      if (++count > maxCached) {
        grounds = new WeakMap();
        count = 1;
      }
      if (known.length === maxPerCaller) known.shift();
      known.push(cached);
      grounds.set(asked.caller, known);
      return cached;
    },
  };
}
