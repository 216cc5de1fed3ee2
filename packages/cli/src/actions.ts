import type { Gateway, OrganizationScope, Page, Paging } from "@tollgate/core";
import type { Command } from "commander";
import { type ListOptions, pageOf, type RecordOptions } from "./arguments.ts";
import { optionsOf } from "./globals.ts";
import { tenantOf, withGateway } from "./open-gateway.ts";
import { printPage, printRecord } from "./print.ts";
import type { Column } from "./table.ts";

/** What a noun's `list` does: reads a page by the command's own options as the filter, and prints it. */
export function listAction<Filter extends object, Row>(
  read: (
    gateway: Gateway,
    filter: Filter & OrganizationScope,
    page: Paging,
  ) => PromiseLike<Page<Row>>,
  columns: readonly Column<Row>[],
): (options: unknown, command: Command) => Promise<void> {
  return async (_options, command) => {
    const options = optionsOf<ListOptions & { readonly filter: Filter }>(command);
    const {
      organization,
      limit: _limit,
      cursor: _cursor,
      config,
      json,
      actor: _actor,
      ...filter
    } = options;
    await withGateway(config, async (gateway) => {
      const scope: OrganizationScope = { organizationId: tenantOf(organization) };
      const own = filter as object as Filter;
      printPage(json, await read(gateway, { ...own, ...scope }, pageOf(options)), columns);
    });
  };
}

/** What a noun's command on one record does: reads or changes it by its id, and prints it. */
export function recordAction(
  run: (
    gateway: Gateway,
    reference: OrganizationScope & { readonly id: string; readonly actor: string },
  ) => Promise<object>,
): (id: string, options: unknown, command: Command) => Promise<void> {
  return async (id, _options, command) => {
    const { organization, config, json, actor } = optionsOf<RecordOptions>(command);
    await withGateway(config, async (gateway) =>
      printRecord(json, await run(gateway, { organizationId: tenantOf(organization), id, actor })),
    );
  };
}
