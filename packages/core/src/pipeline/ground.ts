import type { BudgetSheet } from "../budgets/book.ts";
import { type Spender, type StandingHolds, standingHolds } from "../budgets/holds.ts";
import type { Policy } from "../contracts/policy.ts";
import type { Caller } from "../domain/caller.ts";
import type { PolicyFacts, Verdict } from "../domain/policy-decision.ts";
import { decide } from "../policy/decide.ts";
import type { Route } from "../routing/route.ts";

/** What decides, the same for all calls. */
interface Deciding {
  readonly policy: Policy;
  readonly dataClasses: readonly string[];
}

/** The caller, the route and the facts of one call. */
interface Asked {
  readonly caller: Caller;
  readonly route: Route;
  readonly facts: PolicyFacts;
}

/**
 * What is the same for all calls of a caller on a route that differ only in their text: the verdict of a policy that ignores
 * estimates, and the holds but for their amounts. A caller is read again when its key changes and the sheet when budgets do:
 * both are other objects then, and what was found for them is not found by the new ones.
 */
export class Ground {
  readonly #deciding: Deciding;
  readonly #asked: Asked;
  #verdict: Verdict | null = null;
  #holds: { readonly sheet: BudgetSheet; readonly standing: StandingHolds } | null = null;

  constructor(deciding: Deciding, asked: Asked) {
    this.#deciding = deciding;
    this.#asked = asked;
  }

  /** Whether it is the ground of calls like this one, of the same caller. */
  isOf({ route, facts }: Asked): boolean {
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

  holdsWithin(sheet: BudgetSheet, at: number): StandingHolds {
    const known = this.#holds;
    if (known?.sheet === sheet && known.standing.from <= at && at < known.standing.until)
      return known.standing;
    const { caller, route } = this.#asked;
    const { organizationId, userId, keyId } = caller;
    const { model, connection } = route;
    const spender: Spender = { organizationId, userId, keyId, model, connection };
    const standing = standingHolds(sheet.budgets, spender, at);
    this.#holds = { sheet, standing };
    return standing;
  }
}

/** The grounds that were found lately. */
export interface Grounds {
  of(asked: Asked): Ground;
}

const mostOfCaller = 16;
const mostOfAll = 10_000;

/** Each caller's latest grounds, and so many of all callers: then it begins again with none. */
export function createGrounds(deciding: Deciding): Grounds {
  let grounds = new WeakMap<Caller, Ground[]>();
  let count = 0;
  return {
    of(asked) {
      const known = grounds.get(asked.caller) ?? [];
      const found = known.find((ground) => ground.isOf(asked));
      if (found) return found;
      const ground = new Ground(deciding, asked);
      if (++count > mostOfAll) {
        grounds = new WeakMap();
        count = 1;
      }
      if (known.length === mostOfCaller) known.shift();
      known.push(ground);
      grounds.set(asked.caller, known);
      return ground;
    },
  };
}
