import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Administration, ExportFormat, Page, Paging, StepFilter } from "@tollgate/core";
import type { Command } from "commander";
import { filterAction } from "../actions.ts";
import { oneOf, timeRange } from "../arguments.ts";
import { writeOut } from "../export-command.ts";
import type { Charge } from "../focus/charges.ts";

/** The options of every file, apart from its filter. */
interface FileOptions<Format extends string> {
  readonly format: Format;
  readonly out: string;
}

type Period = Pick<StepFilter, "from" | "to">;

/** Files for other systems: costs in the format of FOCUS, and the records of decisions and changes. */
export function defineExport(program: Command): void {
  const noun = program.command("export").description("files for finance and audit");
  fileCommand(noun, "focus", "costs with the columns of FOCUS 1.2")
    .option("--format <format>", "csv or parquet", oneOf("csv", "parquet"), "csv")
    .action(filterAction<Period & FileOptions<"csv" | "parquet">>(focus));
  fileCommand(noun, "decisions", "policy decisions")
    .option("--format <format>", "csv or jsonl", oneOf<ExportFormat>("csv", "jsonl"), "csv")
    .action(
      filterAction<Period & FileOptions<ExportFormat>>(
        async ({ decisions }, { format, out, ...filter }) =>
          writeOut(Readable.fromWeb(decisions.export(filter, { format })), out),
      ),
    );
  fileCommand(noun, "changes", "administrative changes and their actors")
    .option("--format <format>", "csv or jsonl", oneOf<ExportFormat>("csv", "jsonl"), "csv")
    .action(
      filterAction<Period & FileOptions<ExportFormat>>(
        async ({ changes }, { format, out, ...filter }) =>
          writeOut(Readable.fromWeb(changes.export(filter, { format })), out),
      ),
    );
}

const rowsPerPage = 250;

function fileCommand(noun: Command, name: string, description: string): Command {
  const command = noun
    .command(name)
    .description(description)
    .option("--organization <id>", "only this organization (default: all)");
  return timeRange(command).option("--out <file>", "the new file, or - for standard output", "-");
}

async function focus(
  { steps }: Pick<Administration, "steps">,
  { format, out, ...filter }: StepFilter & FileOptions<"csv" | "parquet">,
): Promise<void> {
  const [{ chargesOf }, { csvFile, parquetFile }] = await Promise.all([
    import("../focus/charges.ts"),
    import("../focus/files.ts"),
  ]);
  let unpriced = 0;
  async function* batches(): AsyncGenerator<readonly Charge[], void, void> {
    for await (const page of pagesOf((paging) => steps.list(filter, paging))) {
      const charges = page.flatMap((step) => [...chargesOf(step)]);
      unpriced += charges.filter(({ attempt }) => attempt.costNanoUsd === null).length;
      yield charges;
    }
  }
  const file = format === "csv" ? csvFile(batches()) : parquetFile(batches());
  await writeOut(Readable.from(file), out);
  if (unpriced > 0)
    process.stderr.write(`${unpriced} rows have no known cost and are 0 in the file\n`);
}

/** Reads a list page by page, as the consumer asks for more. */
async function* pagesOf<Row>(
  read: (paging: Paging) => PromiseLike<Page<Row>>,
): AsyncGenerator<readonly Row[], void, void> {
  let cursor: string | null = null;
  do {
    const page: Page<Row> = await read({ cursor, limit: rowsPerPage });
    yield page.data;
    // SQLite reads a page at once, and a file may need many pages before it has bytes to write.
    await nextTurn();
    cursor = page.nextCursor;
  } while (cursor !== null);
}
