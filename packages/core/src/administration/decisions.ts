import { GatewayError } from "../errors/gateway-error.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { checked } from "./arguments.ts";
import { type DecisionFilter, readDecisionFilter } from "./decision-filter.ts";
import { type DecisionRecord, toDecisionRecord } from "./decision-records.ts";
import { type ExportOptions, exportFile } from "./export.ts";
import { decisionColumns } from "./export-columns.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { exportOptions, recordReference } from "./schemas.ts";
import { type OrganizationScope, tenantOf } from "./tenant.ts";

/** Policy decisions: every request that got as far as one. */
export interface Decisions {
  /** Newest first. */
  list(filter: DecisionFilter, paging?: Paging): List<DecisionRecord>;
  /** @throws GatewayError `decision_not_found` */
  get(reference: OrganizationScope & { readonly id: string }): Promise<DecisionRecord>;
  /** As `steps.export`, of decisions. */
  export(filter: DecisionFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

export function createDecisions(line: GatewayContext, ready: () => Promise<void>): Decisions {
  const { store, dataClasses } = line;
  const list: Decisions["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => {
        const { query, matches } = readDecisionFilter(filter, dataClasses);
        await ready();
        const page = await store.decisions.list(query, storePaging);
        return { ...page, data: page.data.filter(matches) };
      },
      toDecisionRecord,
      paging,
    );
  return {
    list,
    export: (filter, options) => {
      const { format } = read(exportOptions, options, { noun: "option" });
      const { query } = readDecisionFilter(filter, dataClasses);
      return exportFile(line, ready, {
        format,
        columns: decisionColumns,
        tenant: query.organizationId,
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    get: checked(recordReference, async (reference) => {
      await ready();
      const decision = await store.decisions.get(tenantOf(reference), reference.id);
      if (!decision)
        throw new GatewayError(
          "decision_not_found",
          "There is no such decision in this organization.",
        );
      return toDecisionRecord(decision);
    }),
  };
}
