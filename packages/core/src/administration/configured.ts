import { decodeCursor, encodeCursor } from "../domain/cursor.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { Price } from "../domain/price.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { priceOf } from "../pipeline/plan-attempt.ts";
import { rulesOf } from "../policy/define-policy.ts";
import type { Rule } from "../policy/rules.ts";
import { type List, listOf, type Paging } from "./list.ts";

/** A model that a gateway lists, with its price now. Other models may be callable as well. */
export interface ModelRecord {
  /** `<gateway>/<vendor>/<model>`. */
  readonly id: string;
  readonly connection: ConnectionOwnership;
  /** The prices of the standard tier; null if no price is known. */
  readonly price: {
    readonly source: Price["source"];
    /** The catalog's release, if the price is from a catalog. */
    readonly version: string | null;
    /** Nanodollars per million tokens by kind, such as `input`. A kind that is left out costs what `input` or `output` does. */
    readonly rates: Readonly<Record<string, number>>;
    /** Nanodollars per request. */
    readonly request: number;
  } | null;
  /** Null if unknown. */
  readonly maxOutputTokens: number | null;
  readonly reasons: boolean | null;
}

/** The policy that decides. */
export interface PolicyRecord {
  readonly version: string;
  /** As `Policy.sessions`. */
  readonly sessions: "ignore" | "read" | "raise";
  /** The rules, as written for `definePolicy`. Null for a policy that is a function, and without a policy, whose version is `none`. */
  readonly rules: readonly PolicyRuleRecord[] | null;
}

/** One rule of a policy. */
export interface PolicyRuleRecord {
  readonly effect: Rule["effect"];
  readonly id: string;
  readonly match: Readonly<Record<string, unknown>>;
  readonly options: Readonly<Record<string, unknown>>;
}

/** The parts of the configuration that operators read. */
export interface Configured {
  /** The models that its gateways list, by id. Asks upstreams whose lists aren't at hand, for at most 2 seconds. */
  models(paging?: Paging): List<ModelRecord>;
  policy(): Promise<PolicyRecord>;
}

export function createConfigured(context: GatewayContext): Configured {
  return {
    models: (paging) =>
      listOf(
        async ({ cursor, limit }) => {
          const after = cursor === null ? "" : decodeCursor("models", cursor).tie;
          const ids = (await listedIds(context)).filter((id) => id > after);
          const data = ids.slice(0, limit);
          const last = data.at(-1);
          const hasMore = last !== undefined && ids.length > limit;
          const nextCursor = hasMore ? encodeCursor("models", { order: 0, tie: last }) : null;
          return { data, nextCursor };
        },
        (id) => modelRecord(context, id),
        paging,
      ),
    policy: async () => {
      const { policy } = context;
      const { version, sessions } = policy;
      return { version, sessions, rules: JSON.parse(JSON.stringify(rulesOf(policy))) };
    },
  };
}

async function listedIds({ providers, modelLists }: GatewayContext): Promise<readonly string[]> {
  const lists = [...providers].map(([gateway, provider]) => modelLists.of(gateway, provider));
  return [...new Set((await Promise.all(lists)).flat())].sort();
}

function modelRecord(context: GatewayContext, id: string): ModelRecord | null {
  const route = context.router.find(id);
  if (route === null) return null;
  const { connection, model } = route;
  const price = priceOf(context, route, context.clock.now());
  return {
    id: formatModelId(model),
    connection,
    price: price === null ? null : standardPrice(price),
    ...context.modelFacts(model),
  };
}

function standardPrice({
  source,
  version,
  request = 0,
  tiers: _tiers,
  longPrompt: _longPrompt,
  ...rates
}: Price): ModelRecord["price"] {
  return { source, version: version ?? null, rates: { ...rates }, request };
}
