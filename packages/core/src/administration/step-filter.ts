import type { StorePage, StorePaging } from "../contracts/repositories.ts";
import type { StepQuery } from "../contracts/step-query.ts";
import { parseModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { listed, lowerAscii, type OneOrMany } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { EndpointName, Metadata, Step, StepOutcome } from "../domain/step.ts";
import { invalidArgument } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { stepFilter } from "./schemas.ts";
import { type OrganizationScope, rangeOf, tenantOf } from "./tenant.ts";

/** Selects Steps. Every given member must match; a list matches any of its values. */
export interface StepFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly session?: OneOrMany;
  readonly turn?: OneOrMany;
  readonly decision?: OneOrMany;
  readonly source?: OneOrMany;
  readonly endpoint?: OneOrMany<EndpointName>;
  /** `gateway`, `vendor`, `model`, `connection` and `host` are those of the last attempt. */
  readonly gateway?: OneOrMany;
  readonly vendor?: OneOrMany;
  /** Model patterns, applied to the model of the last attempt. */
  readonly model?: OneOrMany;
  readonly connection?: OneOrMany<ConnectionOwnership>;
  readonly host?: OneOrMany;
  /** 1 to 16 pairs that the request's `metadata` must all contain. */
  readonly metadata?: Metadata;
  readonly outcome?: OneOrMany<StepOutcome | "open">;
  readonly dataClass?: { readonly from?: string; readonly upTo?: string };
  /** ISO 8601: opened at or after `from`, and before `to`, which must not be earlier. */
  readonly from?: string;
  readonly to?: string;
}

/** The store's fields for members of a filter that select plain values. */
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

/** The query for the store, and the model patterns that its rows are then compared with. */
export interface StepSelection {
  readonly query: StepQuery;
  readonly models: readonly string[] | undefined;
}

/** @throws GatewayError `invalid_argument` with every problem of the filter */
export function readStepFilter(input: StepFilter, dataClasses: readonly string[]): StepSelection {
  const filter = read(stepFilter, input, filters);
  const { dataClass, metadata } = filter;
  const selected = Object.entries(filter).flatMap(([name, value]) =>
    isField(name) ? [[fields[name], [value].flat()]] : [],
  );
  const query = {
    organizationId: tenantOf(filter),
    ...Object.fromEntries(selected),
    ...(dataClass === undefined ? {} : { dataClass: classesBetween(dataClasses, dataClass) }),
    ...(metadata === undefined ? {} : { metadata }),
    ...rangeOf(filter),
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
    throw invalidArgument(
      "dataClass",
      `Unknown data class: ${unknown}. Use one of ${dataClasses.join(", ")}.`,
    );
  const first = from === undefined ? 0 : dataClasses.indexOf(from);
  const last = upTo === undefined ? dataClasses.length - 1 : dataClasses.indexOf(upTo);
  if (first > last)
    throw invalidArgument("dataClass", "`dataClass.from` must not be above `dataClass.upTo`.");
  return dataClasses.slice(first, last + 1);
}

/** Reads a page of Steps. Model patterns are applied here, so the page can be shorter than its limit. */
export async function readSteps(
  context: GatewayContext,
  ready: () => Promise<void>,
  filter: StepFilter,
  paging: StorePaging,
): Promise<StorePage<Step>> {
  const { query, models } = readStepFilter(filter, context.dataClasses);
  await ready();
  const page = await context.store.steps.list({ ...plainModel(models), ...query }, paging);
  return { ...page, data: page.data.filter((step) => matchesPattern(models, step)) };
}

/** The store has an index for one model name. The rest of the id is compared here. */
function plainModel(models: readonly string[] = []): Pick<StepQuery, "model"> {
  const [only, ...others] = models;
  const id = only === undefined || others.length > 0 ? null : parseModelId(only);
  return id === null || id.model.includes("*") ? {} : { model: [lowerAscii(id.model)] };
}

function matchesPattern(models: readonly string[] | undefined, step: Step): boolean {
  const last = step.attempts.at(-1);
  return models === undefined || (last !== undefined && selectsModel(models, last));
}
