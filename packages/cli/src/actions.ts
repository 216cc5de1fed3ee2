import type { Gateway, OrganizationScope, Page, Paging } from "@tollgate/core";
import type { Command } from "commander";
import { type ListOptions, pageOf, type RecordOptions } from "./arguments.ts";
import { type Globals, optionsOf } from "./globals.ts";
import { organizationScope, withGateway } from "./open-gateway.ts";
import { printPage, printRecord } from "./print.ts";
import type { Column } from "./table.ts";

/** Creates the action of a command on many records. Its own options are the filter. */
export function filterAction<Filter extends object>(
  run: (gateway: Gateway, filter: Filter & OrganizationScope, globals: Globals) => Promise<void>,
): (options: unknown, command: Command) => Promise<void> {
  return async (_options, command) => {
    const { organization, config, json, actor, ...filter } = optionsOf<
      ListOptions & { readonly filter: Filter }
    >(command);
    const globals = { actor, ...(json === undefined ? {} : { json }) };
    await withGateway(config, async (gateway) => {
      const own = filter as object as Filter;
      await run(gateway, { ...own, organizationId: organizationScope(organization) }, globals);
    });
  };
}

/** Creates the action of a `list` command: reads one page with the command's options as the filter, and prints it. */
export function listAction<Filter extends object, Row>(
  read: (
    gateway: Gateway,
    filter: Filter & OrganizationScope,
    page: Paging,
  ) => PromiseLike<Page<Row>>,
  columns: readonly Column<Row>[],
): (options: unknown, command: Command) => Promise<void> {
  return filterAction<Filter & ListOptions>(async (gateway, options, { json }) => {
    const { limit: _limit, cursor: _cursor, ...filter } = options;
    const own = filter as object as Filter & OrganizationScope;
    printPage(json, await read(gateway, own, pageOf(options)), columns);
  });
}

/** Creates the action of a command on one record: reads or changes it by its id, and prints it. */
export function recordAction(
  run: (
    gateway: Gateway,
    reference: OrganizationScope & { readonly id: string; readonly actor: string },
  ) => Promise<object>,
): (id: string, options: unknown, command: Command) => Promise<void> {
  return async (id, _options, command) => {
    const { organization, config, json, actor } = optionsOf<RecordOptions>(command);
    await withGateway(config, async (gateway) =>
      printRecord(
        json,
        await run(gateway, { organizationId: organizationScope(organization), id, actor }),
      ),
    );
  };
}
