import type { Tenant } from "../contracts/step-query.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import type { Step } from "../domain/step.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { checked } from "./arguments.ts";
import { correctionOf, type StepCorrection } from "./correct-step.ts";
import { type ExportOptions, exportFile } from "./export.ts";
import { stepColumns } from "./export-columns.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { readSteps } from "./read-steps.ts";
import { createRepricing, type RepricedAttempt, type RepriceOptions } from "./reprice-steps.ts";
import { exportOptions, recordReference, stepCorrection } from "./schemas.ts";
import { readStepContent, type StepContent } from "./step-content.ts";
import { readStepFilter, type StepFilter } from "./step-filter.ts";
import { type StepRecord, toStepRecord } from "./step-records.ts";
import { summarize, type UsageSummary } from "./summaries.ts";
import { type OrganizationScope, tenantOf } from "./tenant.ts";

/** Every Step: where money adds up. */
export interface Steps {
  /** Newest first. */
  list(filter: StepFilter, paging?: Paging): List<StepRecord>;
  /** @throws GatewayError `step_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<StepRecord>;
  /**
   * Returns the recorded content of one Step, also of one that failed or was cancelled: its instructions, its new messages,
   * and the answer and reasoning that the client was shown. For each null part, `missing` says why.
   * @throws GatewayError `step_not_found`
   */
  content(reference: OrganizationScope & { readonly id: string }): Promise<StepContent>;
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
   * Computes anew, at other prices, what each attempt of the Steps would have cost: a row for each attempt that ended.
   * Changes nothing; with `apply` every attempt that comes out different is corrected, as by `correct`, before its row
   * is shown, so that what was recorded stays beside it. Running it again corrects nothing twice. Awaited, it looks at
   * one page of Steps; `for await` goes through all.
   * @throws GatewayError `invalid_argument`
   */
  reprice(filter: StepFilter, repricing: RepriceOptions, paging?: Paging): List<RepricedAttempt>;
  /**
   * A file of any size: UTF-8, newest first, one organization after the other. It is read as it is taken, a page of
   * 250 records at a time, and ends early when it is cancelled. `jsonl` holds whole records, `csv` one line for each
   * with the columns of the reference in their order; text that a spreadsheet would take for a formula begins with an
   * apostrophe there. A failure of the store errors the stream.
   * @throws GatewayError `invalid_argument`, at once
   */
  export(filter: StepFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

export function createSteps(line: GatewayContext, ready: () => Promise<void>): Steps {
  async function find(tenant: Tenant, id: string): Promise<Step> {
    await ready();
    const step = await line.store.steps.get(tenant, id);
    if (step) return step;
    throw noSuchStep();
  }

  const list: Steps["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => readSteps(line, ready, filter, storePaging),
      toStepRecord,
      paging,
    );

  return {
    list,
    get: checked(recordReference, async (reference) =>
      toStepRecord(await find(tenantOf(reference), reference.id)),
    ),
    content: checked(recordReference, async (reference) => {
      const step = await find(tenantOf(reference), reference.id);
      const content = await readStepContent(line.store, step);
      if (content === null) throw noSuchStep();
      return content;
    }),
    correct: checked(stepCorrection, async (correction) => {
      const tenant = correction.organizationId;
      const step = await find(tenant, correction.id);
      await line.store.correct(correctionOf(line, step, correction));
      return toStepRecord(await find(tenant, step.id));
    }),
    export: (filter, options) => {
      const { format } = read(exportOptions, options, { noun: "option" });
      readStepFilter(filter, line.dataClasses);
      return exportFile(line, ready, {
        format,
        columns: stepColumns,
        tenant: tenantOf(filter),
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    reprice: (filter, repricing, paging) =>
      listOf(
        async (storePaging) => {
          const rowsOf = createRepricing(line, repricing);
          const page = await readSteps(line, ready, filter, storePaging);
          return { ...page, data: await rowsOf(page.data) };
        },
        (row) => row,
        paging,
      ),
    summarize: async (filter, by) => summarize(line, ready, { filter, by }),
  };
}

function noSuchStep(): GatewayError {
  return new GatewayError("step_not_found", "There is no such Step in this organization.");
}
