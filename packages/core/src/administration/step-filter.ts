import type { StepQuery } from "../contracts/step-query.ts";
import { parseModelId } from "../domain/model-id.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { Endpoint, StepOutcome } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { fromIso, type OrganizationScope, tenantOf } from "./tenant.ts";
import { valuesOf } from "./values-of.ts";

/** Which Steps: every given member must match, and a list matches any of its values. */
export interface StepFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly session?: OneOrMany;
  readonly turn?: OneOrMany;
  readonly decision?: OneOrMany;
  readonly source?: OneOrMany;
  readonly endpoint?: OneOrMany<Endpoint>;
  /** `gateway`, `vendor`, `model`, `connection` and `host` are those of the attempt that was the last. */
  readonly gateway?: OneOrMany;
  readonly vendor?: OneOrMany;
  /** Model patterns, applied to the model that was used. */
  readonly model?: OneOrMany;
  readonly connection?: OneOrMany<ConnectionOwnership>;
  readonly host?: OneOrMany;
  readonly outcome?: OneOrMany<StepOutcome | "open">;
  readonly dataClass?: { readonly from?: string; readonly upTo?: string };
  /** ISO 8601: opened at or after, and before. */
  readonly from?: string;
  readonly to?: string;
}

/** The fields of a store's query, by the members of a filter that select plain values. */
const fields = {
  user: "userId",
  key: "keyId",
  session: "sessionId",
  turn: "turnId",
  decision: "decisionId",
  source: "source",
  endpoint: "endpoint",
  gateway: "gateway",
  vendor: "vendor",
  connection: "connection",
  host: "host",
  outcome: "outcome",
} as const satisfies Partial<Record<keyof StepFilter, keyof StepQuery>>;

const others = ["organizationId", "model", "dataClass", "from", "to"];

/**
 * A filter as the store's query, model patterns aside.
 * @throws GatewayError `invalid_argument` for what no Step could be compared with, and for members there are none of
 */
export function stepQueryOf(filter: StepFilter, dataClasses: readonly string[]): StepQuery {
  const { dataClass, from, to } = filter;
  const selected = Object.entries(filter).flatMap(([name, value]: [string, unknown]) => {
    if (value === undefined || others.includes(name)) return [];
    return [[fieldOf(name), valuesOf(name, value)]];
  });
  return {
    organizationId: tenantOf(filter),
    ...Object.fromEntries(selected),
    ...(dataClass === undefined ? {} : { dataClass: classesBetween(dataClasses, dataClass) }),
    ...(from === undefined ? {} : { from: fromIso("from", from) }),
    ...(to === undefined ? {} : { to: fromIso("to", to) }),
  };
}

/** @throws GatewayError `invalid_argument` */
export function requireStepFilter(filter: StepFilter, dataClasses: readonly string[]): void {
  stepQueryOf(filter, dataClasses);
  modelPatternsOf(filter.model);
}

function fieldOf(name: string): string {
  const field: string | undefined = Reflect.get(fields, name);
  if (field !== undefined && Object.hasOwn(fields, name)) return field;
  throw new GatewayError("invalid_argument", `There is no filter ${name}.`, { param: name });
}

/** The model patterns of a filter; absent, all models. */
export function modelPatternsOf(model: OneOrMany | undefined): readonly string[] | undefined {
  if (model === undefined) return undefined;
  const patterns = valuesOf("model", model);
  const wrong = patterns.find((pattern) => parseModelId(pattern) === null);
  if (wrong === undefined) return patterns;
  throw new GatewayError(
    "invalid_argument",
    `${wrong} is not a model pattern <gateway>/<vendor>/<model>.`,
    { param: "model" },
  );
}

/**
 * The data classes between two, in the configured order.
 * @throws GatewayError `invalid_argument`
 */
export function classesBetween(
  dataClasses: readonly string[],
  range: { readonly from?: string; readonly upTo?: string },
): readonly string[] {
  if (!isRange(range))
    throw new GatewayError(
      "invalid_argument",
      "dataClass must be { from, upTo }, or one of them.",
      {
        param: "dataClass",
      },
    );
  const { from, upTo } = range;
  const unknown = [from, upTo].find((name) => name !== undefined && !dataClasses.includes(name));
  if (unknown !== undefined)
    throw new GatewayError("invalid_argument", `${unknown} is not a data class.`, {
      param: "dataClass",
    });
  const first = from === undefined ? 0 : dataClasses.indexOf(from);
  const last = upTo === undefined ? dataClasses.length - 1 : dataClasses.indexOf(upTo);
  return dataClasses.slice(first, last + 1);
}

/** Anything else would be no range, and select every class. */
function isRange(range: unknown): boolean {
  return (
    typeof range === "object" &&
    range !== null &&
    Object.keys(range).every((name) => name === "from" || name === "upTo")
  );
}
