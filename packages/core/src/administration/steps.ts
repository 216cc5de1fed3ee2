import type { StepQuery } from "../contracts/repositories.ts";
import { parseModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { listed, type OneOrMany } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { Step, StepOutcome } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { type StepRecord, toStepRecord } from "./step-records.ts";
import { fromIso, type OrganizationScope, requireId, tenantOf } from "./tenant.ts";

/** Which Steps: every given member must match, and a list matches any of its values. */
export interface StepFilter extends OrganizationScope {
  readonly user?: OneOrMany;
  readonly key?: OneOrMany;
  readonly session?: OneOrMany;
  readonly turn?: OneOrMany;
  readonly decision?: OneOrMany;
  readonly source?: OneOrMany;
  readonly gateway?: OneOrMany;
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

/** Every Step: where money adds up. */
export interface Steps {
  /** Newest first. */
  list(filter: StepFilter, paging?: Paging): List<StepRecord>;
  /** @throws GatewayError `step_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<StepRecord>;
}

export function createSteps(line: Line, ready: () => Promise<void>): Steps {
  return {
    list: (filter, paging) => listSteps(line, ready, { filter, paging, toRow: toStepRecord }),
    async get({ organizationId, id }) {
      await ready();
      const step = await line.store.steps.get(tenantOf({ organizationId }), requireId("id", id));
      if (!step)
        throw new GatewayError("step_not_found", "There is no such Step in this organization.");
      return toStepRecord(step);
    },
  };
}

/** Lists Steps as rows of some kind. Model patterns are applied here, so a page can be shorter than its limit. */
export function listSteps<Row>(
  line: Line,
  ready: () => Promise<void>,
  {
    filter,
    paging,
    toRow,
  }: {
    readonly filter: StepFilter;
    readonly paging: Paging | undefined;
    readonly toRow: (step: Step) => Row;
  },
): List<Row> {
  return listOf(
    async (storePaging) => {
      await ready();
      return line.store.steps.list(queryOf(filter, line.dataClasses), storePaging);
    },
    (step) => (matchesPattern(filter.model, step) ? toRow(step) : null),
    paging,
  );
}

function matchesPattern(model: OneOrMany | undefined, step: Step): boolean {
  const last = step.attempts.at(-1);
  return model === undefined || (last !== undefined && selectsModel(model, last));
}

function queryOf(filter: StepFilter, dataClasses: readonly string[]): StepQuery {
  const { dataClass, from, to } = filter;
  const selectors = {
    userId: filter.user,
    keyId: filter.key,
    sessionId: filter.session,
    turnId: filter.turn,
    decisionId: filter.decision,
    source: filter.source,
    gateway: filter.gateway,
    connection: filter.connection,
    host: filter.host,
    outcome: filter.outcome,
    ...exactModel(filter.model),
  };
  const given = Object.entries(selectors).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, listed(value)]],
  );
  return {
    organizationId: tenantOf(filter),
    ...Object.fromEntries(given),
    ...(dataClass === undefined ? {} : { dataClass: classesBetween(dataClasses, dataClass) }),
    ...(from === undefined ? {} : { from: fromIso("from", from) }),
    ...(to === undefined ? {} : { to: fromIso("to", to) }),
  };
}

/** One plain model id is left to the store's own filter. */
function exactModel(model: OneOrMany | undefined): {
  readonly gateway?: string;
  readonly vendor?: string;
  readonly model?: string;
} {
  if (model === undefined) return {};
  const patterns = listed(model);
  const wrong = patterns.find((pattern) => parseModelId(pattern) === null);
  if (wrong !== undefined) {
    throw new GatewayError(
      "invalid_argument",
      `${wrong} is not a model pattern <gateway>/<vendor>/<model>.`,
      { param: "model" },
    );
  }
  const [only, ...others] = patterns;
  const id =
    only === undefined || others.length > 0 || only.includes("*") ? null : parseModelId(only);
  return id ?? {};
}

function classesBetween(
  dataClasses: readonly string[],
  { from, upTo }: { readonly from?: string; readonly upTo?: string },
): readonly string[] {
  const unknown = [from, upTo].find((name) => name !== undefined && !dataClasses.includes(name));
  if (unknown !== undefined)
    throw new GatewayError("invalid_argument", `${unknown} is not a data class.`, {
      param: "dataClass",
    });
  const first = from === undefined ? 0 : dataClasses.indexOf(from);
  const last = upTo === undefined ? dataClasses.length - 1 : dataClasses.indexOf(upTo);
  return dataClasses.slice(first, last + 1);
}
