import type { Tenant } from "../contracts/step-query.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { type CsvField, csvRecord } from "../kernel/csv.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { Page, Paging } from "./list.ts";
import { organizationsOf } from "./organizations.ts";

/** `csv`: RFC 4180 in UTF-8, a header first. `jsonl`: one JSON record a line. */
export type ExportFormat = "csv" | "jsonl";

/** How a file of records is written. */
export interface ExportOptions {
  readonly format: ExportFormat;
}

/** A column of a CSV file: its heading and how a record fills it. */
export type ExportColumn<Row> = readonly [heading: string, of: (row: Row) => CsvField];

/** What to write: records page by page, and what a CSV file shows of each. */
export interface ExportSource<Row> {
  readonly tenant: Tenant;
  readonly columns: readonly ExportColumn<Row>[];
  readonly read: (organizationId: string, paging: Paging) => PromiseLike<Page<Row>>;
}

const rowsPerPage = 250;

/**
 * Writes records as a file of any size: read as the reader takes it, a page at a time, organization by organization.
 * @throws GatewayError `invalid_argument` for a format that there is not
 */
export function exportFile<Row>(
  line: GatewayContext,
  ready: () => Promise<void>,
  { format, ...source }: ExportSource<Row> & ExportOptions,
): ReadableStream<Uint8Array> {
  const write = writerOf(format, source.columns);
  const encoder = new TextEncoder();
  const texts = pagesOf(line, ready, source);
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
    // Nothing is read before it is asked for.
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

function writerOf<Row>(format: unknown, columns: readonly ExportColumn<Row>[]): Writer<Row> {
  if (format === "jsonl") return { head: "", row: (row) => `${JSON.stringify(row)}\n` };
  if (format === "csv")
    return {
      head: csvRecord(columns.map(([heading]) => heading)),
      row: (row) => csvRecord(columns.map(([, of]) => of(row))),
    };
  throw new GatewayError("invalid_argument", "format must be csv or jsonl.", { param: "format" });
}
