import type { StepQuery, Tenant } from "../contracts/repositories.ts";
import { parseModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { listed, type OneOrMany } from "../domain/pattern.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { Step, StepOutcome } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import { correctionOf, type StepCorrection } from "./correct-step.ts";
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
  /**
   * Corrects what an attempt of a settled Step used or cost: adds a record beside the one it corrects, and moves what
   * is settled on the budgets that the attempt was charged to. From then on the Step's sums are the corrected ones.
   * @throws GatewayError `step_not_found`, `invalid_argument` (an open Step, an attempt it does not have, an amount
   * that is no safe integer from 0)
   */
  correct(correction: StepCorrection): Promise<StepRecord>;
}

export function createSteps(line: Line, ready: () => Promise<void>): Steps {
  async function find(tenant: Tenant, id: string): Promise<Step> {
    await ready();
    const step = await line.store.steps.get(tenant, requireId("id", id));
    if (step) return step;
    throw new GatewayError("step_not_found", "There is no such Step in this organization.");
  }

  return {
    list: (filter, paging) => listSteps(line, ready, { filter, paging, toRow: toStepRecord }),
    get: async ({ organizationId, id }) =>
      toStepRecord(await find(tenantOf({ organizationId }), id)),
    async correct(correction) {
      const tenant = requireId("organizationId", correction.organizationId);
      const step = await find(tenant, correction.id);
      await line.store.correct(correctionOf(line, step, correction));
      return toStepRecord(await find(tenant, step.id));
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
