import { setImmediate as nextTurn } from "node:timers/promises";
import { csvRecord } from "@tollgate/core";
import type { ParquetWriter } from "hyparquet-writer";
import { type Charge, decimalScale } from "./charges.ts";
import { type FocusColumn, focusColumns } from "./columns.ts";

/** Charges, batch by batch: never all of them at once. */
export type ChargeBatches = AsyncIterable<readonly Charge[]>;

/** Writes a CSV file (RFC 4180). Amounts are exact decimals, times have whole seconds, and an absent value is empty. */
export async function* csvFile(batches: ChargeBatches): AsyncGenerator<Uint8Array, void, void> {
  const encoder = new TextEncoder();
  yield encoder.encode(csvRecord(focusColumns.map(({ name }) => name)));
  for await (const batch of batches)
    yield encoder.encode(
      batch
        .map((charge) => csvRecord(focusColumns.map((column) => field(column, charge))))
        .join(""),
    );
}

function field(column: FocusColumn, charge: Charge): string | number | null {
  if (column.type === "decimal") {
    const value = column.of(charge);
    return value === null ? null : decimalText(value);
  }
  const value = column.of(charge);
  if (column.type !== "time" || typeof value !== "number") return value;
  return `${new Date(value).toISOString().slice(0, "2026-01-01T00:00:00".length)}Z`;
}

/** Writes a whole number at `decimalScale` as a decimal without needless zeros. */
function decimalText(value: bigint): string {
  const digits = String(value < 0n ? -value : value).padStart(decimalScale + 1, "0");
  const fraction = digits.slice(-decimalScale).replace(/0{1,15}$/, "");
  const whole = digits.slice(0, -decimalScale);
  return `${value < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Holds one row group at a time. The end of a file lists them all at once, so a million rows must not have too many. */
const rowsPerGroup = 10_000;

/** Writes a Parquet file with Snappy compression: amounts as DECIMAL(38,15), times as UTC timestamps in milliseconds. */
export async function* parquetFile(batches: ChargeBatches): AsyncGenerator<Uint8Array, void, void> {
  const { ByteWriter, ParquetWriter: Writer } = await import("hyparquet-writer");
  const bytes = new ByteWriter();
  const schema = [
    { name: "root", num_children: focusColumns.length },
    ...focusColumns.map(element),
  ];
  const file = new Writer({ writer: bytes, schema, createdBy: "tollgate" });
  const taken = (): Uint8Array => {
    const chunk = bytes.getBytes().slice();
    bytes.index = 0;
    return chunk;
  };
  const group = focusColumns.map((column) => ({ column, values: [] as Value[] }));
  let rows = 0;
  /** Writes a row group column by column: other work of the process continues in between. */
  async function* write(): AsyncGenerator<Uint8Array, void, void> {
    for (const { column, values } of group) {
      // Readers skip row groups by time.
      const statistics = column.type === "time";
      const data = values.splice(0);
      const columnData = [{ name: column.name, data, statistics, offsetIndex: false }];
      await file.write({ columnData, rowGroupSize: rows });
      yield taken();
      await nextTurn();
    }
    joinColumns(file, rows);
    rows = 0;
  }
  for await (const batch of batches) {
    for (const charge of batch) {
      for (const { column, values } of group) values.push(column.of(charge));
      if (++rows === rowsPerGroup) yield* write();
    }
  }
  if (rows > 0) yield* write();
  await file.finish();
  yield taken();
}

type Value = ReturnType<FocusColumn["of"]>;

/** Makes one row group of the last ones, each of which has one column of the same rows. */
function joinColumns(file: ParquetWriter, rows: number): void {
  const single = file.row_groups.splice(-focusColumns.length);
  file.row_groups.push({
    columns: single.flatMap(({ columns }) => columns),
    total_byte_size: single.reduce((sum, group) => sum + group.total_byte_size, 0n),
    total_compressed_size: single.reduce(
      (sum, group) => sum + (group.total_compressed_size ?? 0n),
      0n,
    ),
    num_rows: BigInt(rows),
  });
  file.num_rows -= BigInt(rows * (focusColumns.length - 1));
}

type SchemaElement = ParquetWriter["schema"][number];

function element(column: FocusColumn): SchemaElement {
  return { name: column.name, repetition_type: "OPTIONAL", ...storage[column.type] };
}

const storage = {
  text: { type: "BYTE_ARRAY", converted_type: "UTF8" },
  decimal: {
    type: "FIXED_LEN_BYTE_ARRAY",
    type_length: 16,
    converted_type: "DECIMAL",
    scale: decimalScale,
    precision: 38,
  },
  time: { type: "INT64", converted_type: "TIMESTAMP_MILLIS" },
  count: { type: "INT32" },
} as const satisfies Readonly<Record<FocusColumn["type"], Partial<SchemaElement>>>;
