import type { StepQuery } from "../contracts/step-query.ts";
import { listed, type OneOrMany } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { EndpointName, Metadata, StepOutcome } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import { stepFilter } from "./schemas.ts";
import { fromIso, type OrganizationScope, tenantOf } from "./tenant.ts";

/** Which Steps: every given member must match, and a list matches any of its values. */
export interface StepFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly session?: OneOrMany;
  readonly turn?: OneOrMany;
  readonly decision?: OneOrMany;
  readonly source?: OneOrMany;
  readonly endpoint?: OneOrMany<EndpointName>;
  /** `gateway`, `vendor`, `model`, `connection` and `host` are those of the attempt that was the last. */
  readonly gateway?: OneOrMany;
  readonly vendor?: OneOrMany;
  /** Model patterns, applied to the model that was used. */
  readonly model?: OneOrMany;
  readonly connection?: OneOrMany<ConnectionOwnership>;
  readonly host?: OneOrMany;
  /** Pairs that must all be in the request's `metadata`: 1 to 16. */
  readonly metadata?: Metadata;
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

/** What the store selects of a filter, and the model patterns that are left to compare. */
export interface StepSelection {
  readonly query: StepQuery;
  readonly models: readonly string[] | undefined;
}

/** @throws GatewayError `invalid_argument` with every problem of the filter */
export function readStepFilter(written: StepFilter, dataClasses: readonly string[]): StepSelection {
  const filter = read(stepFilter, written, filters);
  const { dataClass, metadata, from, to } = filter;
  const selected = Object.entries(filter).flatMap(([name, value]) =>
    isField(name) ? [[fields[name], [value].flat()]] : [],
  );
  const query = {
    organizationId: tenantOf(filter),
    ...Object.fromEntries(selected),
    ...(dataClass === undefined ? {} : { dataClass: classesBetween(dataClasses, dataClass) }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(from === undefined ? {} : { from: fromIso(from) }),
    ...(to === undefined ? {} : { to: fromIso(to) }),
  };
  return { query, models: filter.model === undefined ? undefined : listed(filter.model) };
}

function isField(name: string): name is keyof typeof fields {
  return Object.hasOwn(fields, name);
}

/**
 * The data classes between two, in the configured order.
 * @throws GatewayError `invalid_argument`
 */
export function classesBetween(
  dataClasses: readonly string[],
  range: { readonly from?: string; readonly upTo?: string },
): readonly string[] {
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
