import type { Tenant } from "../contracts/step-query.ts";
import { read } from "../input/read.ts";
import { type CsvField, csvRecord } from "../kernel/csv.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { Page, Paging } from "./list.ts";
import { exportOptions } from "./schemas.ts";
import { organizationsOf } from "./tenant.ts";

/** `csv`: RFC 4180 in UTF-8, with a header. `jsonl`: one JSON record per line. */
export type ExportFormat = "csv" | "jsonl";

/** The format of an export. */
export interface ExportOptions {
  readonly format: ExportFormat;
}

/** A column of a CSV file: its heading, and its field of a record. */
export type ExportColumn<Row> = readonly [heading: string, of: (row: Row) => CsvField];

/** The records to write, page by page, and their columns in a CSV file. */
export interface ExportSource<Row> {
  readonly tenant: Tenant;
  readonly columns: readonly ExportColumn<Row>[];
  readonly read: (organizationId: string, paging: Paging) => PromiseLike<Page<Row>>;
}

const rowsPerPage = 250;

/**
 * Streams records as a file of any size, one organization after the other. Reads a page when the consumer asks for more.
 * @throws GatewayError `invalid_argument` for an unknown option or format
 */
export function exportFile<Row>(
  context: GatewayContext,
  ready: () => Promise<void>,
  options: ExportOptions,
  source: ExportSource<Row>,
): ReadableStream<Uint8Array> {
  const { format } = read(exportOptions, options, { noun: "option" });
  const write = writerOf(format, source.columns);
  const encoder = new TextEncoder();
  const texts = pagesOf(context, ready, source);
  let isBegun = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const page = await texts.next();
        const head = isBegun ? "" : write.head;
        isBegun = true;
        const text = head + (page.done ? "" : page.value.map(write.row).join(""));
        if (text !== "") controller.enqueue(encoder.encode(text));
        if (page.done) controller.close();
      },
      async cancel() {
        await texts.return(undefined);
      },
    },
    // Reads nothing before the consumer asks for it.
    { highWaterMark: 0 },
  );
}

async function* pagesOf<Row>(
  { store }: GatewayContext,
  ready: () => Promise<void>,
  { tenant, read }: ExportSource<Row>,
): AsyncGenerator<readonly Row[], void, void> {
  await ready();
  for await (const organizationId of organizationsOf(store, tenant)) {
    let cursor: string | null = null;
    do {
      const page: Page<Row> = await read(organizationId, { cursor, limit: rowsPerPage });
      if (page.data.length > 0) yield page.data;
      cursor = page.nextCursor;
      await yieldToEventLoop();
    } while (cursor !== null);
  }
}

interface Writer<Row> {
  readonly head: string;
  readonly row: (row: Row) => string;
}

function writerOf<Row>(format: ExportFormat, columns: readonly ExportColumn<Row>[]): Writer<Row> {
  if (format === "jsonl") return { head: "", row: (row) => `${JSON.stringify(row)}\n` };
  return {
    head: csvRecord(columns.map(([heading]) => heading)),
    row: (row) => csvRecord(columns.map(([, of]) => of(row))),
  };
}
