import type { Administration, OrganizationScope, Page, Paging, WithActor } from "@tollgate/core";
import type { Command } from "commander";
import { type ListOptions, pageOf, type RecordOptions } from "./arguments.ts";
import { optionsOf } from "./globals.ts";
import { printPage, printRecord } from "./print.ts";
import type { Column } from "./table.ts";
import { type Invocation, organizationScope, withRecords } from "./with-administration.ts";

/** Creates the action of a command on many records. Its own options are the filter. */
export function filterAction<Filter extends object>(
  run: (
    administration: Administration,
    filter: Filter & OrganizationScope,
    invocation: Invocation,
  ) => Promise<void>,
): (options: unknown, command: Command) => Promise<void> {
  return async (_options, command) => {
    const { organization, ...filter } = optionsOf<ListOptions & { readonly filter: Filter }>(
      command,
    );
    const own = filter as object as Filter;
    await withRecords(command, (administration, invocation) =>
      run(administration, { ...own, organizationId: organizationScope(organization) }, invocation),
    );
  };
}

/** Creates the action of a `list` command: reads one page with the command's options as the filter, and prints it. */
export function listAction<Filter extends object, Row>(
  read: (
    administration: Administration,
    filter: Filter & OrganizationScope,
    page: Paging,
  ) => PromiseLike<Page<Row>>,
  columns: readonly Column<Row>[],
): (options: unknown, command: Command) => Promise<void> {
  return filterAction<Filter & ListOptions>(async (administration, options, { json }) => {
    const { limit: _limit, cursor: _cursor, ...filter } = options;
    const own = filter as object as Filter & OrganizationScope;
    printPage(json, await read(administration, own, pageOf(options)), columns);
  });
}

/** Creates the action of a command on one record: reads it by its id, and prints it. */
export function recordAction(
  run: (
    administration: Administration,
    reference: OrganizationScope & { readonly id: string },
  ) => Promise<object>,
): (id: string, options: unknown, command: Command) => Promise<void> {
  return contentAction(
    (administration, { organizationId, id }) => run(administration, { organizationId, id }),
    (json, record) => printRecord(json, record),
  );
}

/** Creates the action of a command on one record whose reading is recorded, or that prints it in its own way. */
export function contentAction<Content>(
  run: (
    administration: Administration,
    reference: OrganizationScope & { readonly id: string } & WithActor,
  ) => Promise<Content>,
  printContent: (json: boolean | undefined, content: Content) => void,
): (id: string, options: unknown, command: Command) => Promise<void> {
  return async (id, _options, command) => {
    const { organization } = optionsOf<RecordOptions>(command);
    const organizationId = organizationScope(organization);
    await withRecords(command, async (administration, { json, acting }) =>
      printContent(json, await run(administration, { organizationId, id, ...acting })),
    );
  };
}
