import type { Tenant } from "../contracts/step-query.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import type { Step } from "../domain/step.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { reportChange } from "./changes.ts";
import { type ContentReference, recordReading } from "./content-reading.ts";
import {
  correctionOf,
  createRepricing,
  type RepricedAttempt,
  type RepriceOptions,
  requireSameCorrection,
  type StepCorrection,
} from "./corrections.ts";
import { type ExportOptions, exportFile } from "./export.ts";
import { stepColumns } from "./export-columns.ts";
import { asReplayed } from "./idempotency.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method } from "./method.ts";
import { contentReference, recordReference, stepCorrection } from "./schemas.ts";
import { readStepContent, type StepContent } from "./step-content.ts";
import { readStepFilter, readSteps, type StepFilter } from "./step-filter.ts";
import { type StepRecord, toStepRecord } from "./step-records.ts";
import {
  type SeriesOptions,
  seriesOf,
  summarize,
  type UsageBucket,
  type UsageSummary,
} from "./summaries.ts";
import { type OrganizationScope, tenantOf } from "./tenant.ts";

/** Every Step, however it ended. Money adds up over Steps. */
export interface Steps {
  /** Newest first. */
  list(filter: StepFilter, paging?: Paging): List<StepRecord>;
  /** @throws GatewayError `step_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<StepRecord>;
  /**
   * Returns the recorded content of one Step, even if it failed or was cancelled: its instructions, its new messages, and the
   * answer and reasoning that the client was shown. For each null part, `missing` says why. Records who reads it, as a change
   * of kind `transcript.read`, before it returns.
   * @throws GatewayError `step_not_found`, or `admin_forbidden` if the Step has a data class above `upTo`
   */
  content(reference: ContentReference): Promise<StepContent>;
  /**
   * Corrects the usage or the cost of an attempt of a settled Step. Adds a record next to the original one, adjusts the
   * budgets that the attempt was charged to, and uses the corrected figures in the Step's sums from then on.
   * @throws GatewayError `step_not_found`, `invalid_argument` (an open Step, an unknown attempt, an amount that isn't a safe
   * integer of at least 0), `idempotency_mismatch`
   */
  correct(correction: StepCorrection): Promise<StepRecord>;
  /**
   * Adds up tokens and money by one or several dimensions, the most expensive row first. Days are in UTC. Each attempt
   * counts with its own gateway, vendor, model, connection and host, and filters on these select attempts. The rows of any
   * summary therefore add up to the same money. A Step that fell back counts in each row that has one of its attempts. `[]`
   * gives one row for everything, or no row if there are no Steps.
   * @throws GatewayError `invalid_argument` for more than 10,000 rows or a sum above 2^53
   */
  summarize(filter: StepFilter, by: OneOrMany<SummaryDimension>): Promise<readonly UsageSummary[]>;
  /**
   * The same by hour or day, oldest first, with how long attempts took. Buckets without Steps have no row. Both read hourly
   * sums, which remain when Steps are removed. Steps are added to them an hour or two after they opened. A filter or `by`
   * with a Session, a Turn, a decision, an endpoint, a host or metadata reads Steps instead.
   * @throws GatewayError `invalid_argument` for more than 10,000 rows or a sum above 2^53
   */
  series(filter: StepFilter, options: SeriesOptions): Promise<readonly UsageBucket[]>;
  /**
   * Computes what each ended attempt would have cost at other prices: one row per attempt. Changes nothing, unless `apply`
   * is true: then it corrects every attempt whose cost differs, as `correct` does, before it returns the row. Running it
   * again corrects nothing twice. `await` covers one page of Steps, `for await` covers all of them.
   * @throws GatewayError `invalid_argument`
   */
  reprice(filter: StepFilter, repricing: RepriceOptions, paging?: Paging): List<RepricedAttempt>;
  /**
   * Streams Steps as a UTF-8 file of any size, newest first, one organization after the other. Reads a page of 250 records
   * when the consumer asks for more, and stops when it cancels. `jsonl` has whole records. `csv` has one line per record,
   * with the columns in the order of the reference; it puts an apostrophe before text that a spreadsheet would take for a
   * formula. If the store fails, the stream errors.
   * @throws GatewayError `invalid_argument`, synchronously
   */
  export(filter: StepFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

export function createSteps(context: GatewayContext, ready: () => Promise<void>): Steps {
  async function find(tenant: Tenant, id: string): Promise<Step> {
    await ready();
    const step = await context.store.steps.get(tenant, id);
    if (step) return step;
    throw notFound();
  }

  const list: Steps["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => readSteps(context, ready, filter, storePaging),
      toStepRecord,
      paging,
    );

  return {
    list,
    get: method(recordReference, async (reference) =>
      toStepRecord(await find(tenantOf(reference), reference.id)),
    ),
    content: method(contentReference, async (reference) => {
      const step = await find(tenantOf(reference), reference.id);
      const content = await readStepContent(context.store, step);
      if (content === null) throw notFound();
      const { organizationId, dataClass, id, sessionId: session } = step;
      const count = (content.input?.length ?? 0) + (content.answer?.length ?? 0);
      const shown = { organizationId, dataClasses: [dataClass], session, step: id, count };
      await recordReading(context, shown, reference);
      return content;
    }),
    correct: method(stepCorrection, async (correction) => {
      const tenant = correction.organizationId;
      const step = await find(tenant, correction.id);
      const intent = correctionOf(context, step, correction);
      const isNew = await context.store.correct(intent);
      const corrected = await find(tenant, step.id);
      if (!isNew) {
        requireSameCorrection(corrected, intent.correction);
        return asReplayed(toStepRecord(corrected));
      }
      reportChange(context, intent.leaf);
      return toStepRecord(corrected);
    }),
    export: (filter, options) => {
      readStepFilter(filter, context.dataClasses);
      return exportFile(context, ready, options, {
        columns: stepColumns,
        tenant: tenantOf(filter),
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    reprice: (filter, repricing, paging) =>
      listOf(
        async (storePaging) => {
          const rowsOf = createRepricing(context, repricing);
          const page = await readSteps(context, ready, filter, storePaging);
          return { ...page, data: await rowsOf(page.data) };
        },
        (row) => row,
        paging,
      ),
    summarize: async (filter, by) => summarize(context, ready, { filter, by }),
    series: async (filter, options) => seriesOf(context, ready, { filter, options }),
  };
}

function notFound(): GatewayError {
  return new GatewayError("step_not_found", "Unknown id: this organization has no such Step.");
}
