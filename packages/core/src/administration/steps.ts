import type { StepQuery, Tenant } from "../contracts/step-query.ts";
import { parseModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import type { Step } from "../domain/step.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import { correctionOf, type StepCorrection } from "./correct-step.ts";
import { type ExportOptions, exportFile } from "./export.ts";
import { stepColumns } from "./export-columns.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { modelPatternsOf, requireStepFilter, type StepFilter, stepQueryOf } from "./step-filter.ts";
import { type StepRecord, toStepRecord } from "./step-records.ts";
import { summarize, type UsageSummary } from "./summaries.ts";
import { type OrganizationScope, requireId, tenantOf } from "./tenant.ts";

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
  /**
   * Adds up tokens and money, by one or several dimensions (a day is one of UTC), the most expensive row first. Each
   * attempt counts with its own gateway, vendor, model, connection and host, and filters of these select attempts, so
   * that the rows of any summary add up to the same money; a Step that fell back counts in each row it has an attempt
   * in. `[]` gives one row of all, or none where there is no Step.
   * @throws GatewayError `invalid_argument` for more than 10,000 rows, and for a sum beyond 2^53
   */
  summarize(filter: StepFilter, by: OneOrMany<SummaryDimension>): Promise<readonly UsageSummary[]>;
  /**
   * A file of any size: UTF-8, newest first, one organization after the other. It is read as it is taken, a page of
   * 250 records at a time, and ends early when it is cancelled. `jsonl` holds whole records, `csv` one line for each
   * with the columns of the reference in their order; text that a spreadsheet would take for a formula begins with an
   * apostrophe there. A failure of the store errors the stream.
   * @throws GatewayError `invalid_argument`, at once
   */
  export(filter: StepFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

export function createSteps(line: Line, ready: () => Promise<void>): Steps {
  async function find(tenant: Tenant, id: string): Promise<Step> {
    await ready();
    const step = await line.store.steps.get(tenant, requireId("id", id));
    if (step) return step;
    throw new GatewayError("step_not_found", "There is no such Step in this organization.");
  }

  const list: Steps["list"] = (filter, paging) =>
    listSteps(line, ready, { filter: () => filter, paging, toRow: toStepRecord });

  return {
    list,
    get: async ({ organizationId, id }) =>
      toStepRecord(await find(tenantOf({ organizationId }), id)),
    async correct(correction) {
      const tenant = requireId("organizationId", correction.organizationId);
      const step = await find(tenant, correction.id);
      await line.store.correct(correctionOf(line, step, correction));
      return toStepRecord(await find(tenant, step.id));
    },
    export: (filter, { format }) => {
      requireStepFilter(filter, line.dataClasses);
      return exportFile(line, ready, {
        format,
        columns: stepColumns,
        tenant: tenantOf(filter),
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    summarize: async (filter, by) => summarize(line, ready, { filter, by }),
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
    readonly filter: () => StepFilter;
    readonly paging: Paging | undefined;
    readonly toRow: (step: Step) => Row;
  },
): List<Row> {
  return listOf(
    async (storePaging) => {
      const asked = filter();
      const query = { ...exactModel(asked.model), ...stepQueryOf(asked, line.dataClasses) };
      await ready();
      const page = await line.store.steps.list(query, storePaging);
      return { ...page, data: page.data.filter((step) => matchesPattern(asked.model, step)) };
    },
    toRow,
    paging,
  );
}

/** One plain model id is left to the store's own filter. */
function exactModel(model: OneOrMany | undefined): Pick<StepQuery, "gateway" | "vendor" | "model"> {
  const [only, ...others] = modelPatternsOf(model) ?? [];
  if (only === undefined || others.length > 0 || only.includes("*")) return {};
  const id = parseModelId(only);
  return id === null ? {} : { gateway: [id.gateway], vendor: [id.vendor], model: [id.model] };
}

function matchesPattern(model: OneOrMany | undefined, step: Step): boolean {
  const last = step.attempts.at(-1);
  return model === undefined || (last !== undefined && selectsModel(model, last));
}
