import { Readable } from "node:stream";
import { arrayBuffer, text } from "node:stream/consumers";
import type { Gateway } from "@tollgate/core";
import { createTestGateway, manualClock, type TestGateway } from "@tollgate/testing";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { beforeAll, describe, expect, it } from "vitest";
import { type Charge, chargesOf } from "./charges.ts";
import { focusColumns } from "./columns.ts";
import { csvFile, parquetFile } from "./files.ts";

type Row = Readonly<Record<string, string>>;

/** The columns of FOCUS 1.2, in alphabetical order. */
const specified = `
  AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingAccountType BillingCurrency BillingPeriodEnd
  BillingPeriodStart CapacityReservationId CapacityReservationStatus ChargeCategory ChargeClass ChargeDescription
  ChargeFrequency ChargePeriodEnd ChargePeriodStart CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName
  CommitmentDiscountQuantity CommitmentDiscountStatus CommitmentDiscountType CommitmentDiscountUnit ConsumedQuantity
  ConsumedUnit ContractedCost ContractedUnitPrice EffectiveCost InvoiceId InvoiceIssuerName ListCost ListUnitPrice
  PricingCategory PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost
  PricingCurrencyListUnitPrice PricingQuantity PricingUnit ProviderName PublisherName RegionId RegionName ResourceId
  ResourceName ResourceType ServiceCategory ServiceName ServiceSubcategory SkuId SkuMeter SkuPriceDetails SkuPriceId
  SubAccountId SubAccountName SubAccountType Tags`
  .trim()
  .split(/\s+/);

const mandatory = `
  BilledCost BillingAccountId BillingAccountType BillingCurrency BillingPeriodEnd BillingPeriodStart ChargeCategory
  ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost
  PricingQuantity PricingUnit ProviderName PublisherName ServiceCategory ServiceName ServiceSubcategory SkuId SubAccountId
  SubAccountType`
  .trim()
  .split(/\s+/);

const prices = {
  "acme/mini": { input: "0.123457", output: "2.000001", cachedInput: "0.017", reasoning: "3.1" },
  "acme/large": { input: "5", output: "20", cacheWrite: "6.25", request: "0.000000007" },
  "acme/free": { input: "0", output: "0" },
};

let gateway: Gateway;
let rows: readonly Row[];
let parquet: ArrayBuffer;

const january = { organizationId: "organization-1", from: "2026-01-01", to: "2026-02-01" };

beforeAll(async () => {
  const test = await createTestGateway({
    models: prices,
    clock: manualClock("2026-01-31T23:59:55.500Z"),
    billing: { reportedCost: "trust", reportedCostFactor: 1_000 },
  });
  ({ gateway } = test);
  await fill(test);
  await test.clock.advance("10s");
  await correct();
  rows = parsed(await text(Readable.from(csvFile(batches()))));
  parquet = await arrayBuffer(Readable.from(parquetFile(batches())));
  return async () => gateway.close();
});

describe("a FOCUS file", () => {
  it("has the columns of FOCUS 1.2, then its own, and a value where one must be", () => {
    const names = Object.keys(rows[0] ?? {});
    expect(names.slice(0, specified.length)).toEqual(specified);
    for (const name of names.slice(specified.length)) expect(name).toMatch(/^x_[A-Z]/);
    for (const row of rows) expect(mandatory.filter((name) => row[name] === "")).toEqual([]);
  });

  it("adds up to the summary of the Steps, to the nanodollar, for any dimension", async () => {
    const [total] = await gateway.steps.summarize(january, []);
    expect(total).toMatchObject({ unknownCosts: 1 });
    expect(sumOf(rows, "BilledCost")).toBe(femto(total?.costNanoUsd));
    expect(sumOf(rows, "EffectiveCost")).toBe(femto(total?.costNanoUsd));
    const tokens = rows.filter((row) => row["ConsumedUnit"] === "Tokens");
    expect(sumOf(tokens, "ConsumedQuantity")).toBe(whole(total?.totalTokens));
    for (const by of ["model", "key"] as const)
      for (const group of await gateway.steps.summarize(january, by)) {
        const own = rows.filter(
          (row) => row[by === "model" ? "ResourceId" : "x_KeyId"] === group[by],
        );
        expect([group[by], sumOf(own, "BilledCost")]).toEqual([
          group[by],
          femto(group.costNanoUsd),
        ]);
      }
  });

  it("counts each token in one kind, after all corrections", async () => {
    const [total] = await gateway.steps.summarize({ ...january, model: "test/acme/mini" }, []);
    const of = (meter: string): bigint =>
      sumOf(
        rows.filter((row) => row["ResourceName"] === "mini" && row["SkuMeter"] === meter),
        "ConsumedQuantity",
      );
    expect(of("Cached input tokens")).toBe(whole(total?.cachedTokens));
    expect(of("Reasoning tokens")).toBe(whole(total?.reasoningTokens));
    expect(of("Input tokens") + of("Cached input tokens")).toBe(whole(total?.promptTokens));
    expect(of("Output tokens") + of("Reasoning tokens")).toBe(whole(total?.completionTokens));
  });

  it("multiplies list prices and quantities to list costs, without rounding", () => {
    const priced = rows.filter((row) => row["ListUnitPrice"] !== "");
    expect(priced.length).toBeGreaterThan(40);
    for (const row of priced) {
      const product = amount(row["ListUnitPrice"]) * amount(row["PricingQuantity"]);
      expect(product).toBe(amount(row["ListCost"]) * whole(1));
    }
    const requests = rows.find((row) => row["SkuMeter"] === "Requests");
    expect(requests).toMatchObject({ ConsumedUnit: "Requests", ListCost: "0.000000007" });
  });

  it("shows each correction as the difference to the figures before it", () => {
    const corrections = rows.filter((row) => row["ChargeClass"] === "Correction");
    expect(corrections.map((row) => [row["SkuMeter"], row["ConsumedQuantity"]])).toEqual([
      ["Cached input tokens", "-10"],
      ["Input tokens", "-990"],
      ["Output tokens", "7"],
      ["Output tokens", "0"],
    ]);
    expect(corrections.every((row) => row["x_CorrectionId"] !== "")).toBe(true);
    expect(corrections[0]).toMatchObject({
      ListUnitPrice: "",
      x_CorrectionActor: "finance",
      ChargePeriodStart: "2026-01-31T23:59:55Z",
      ChargePeriodEnd: "2026-01-31T23:59:56Z",
      BillingPeriodStart: "2026-02-01T00:00:00Z",
      BillingPeriodEnd: "2026-03-01T00:00:00Z",
    });
    expect(sumOf(corrections.slice(-1), "BilledCost")).toBe(femto(4_242 - 1_000));
  });

  it("calls only changes of a later month corrections", async () => {
    const charges = (await gateway.steps.list(january)).data.flatMap((step) => [
      ...chargesOf(step),
    ]);
    const column = focusColumns.find(({ name }) => name === "ChargeClass");
    for (const charge of charges) {
      if (charge.correction === null) continue;
      expect(column?.of(charge)).toBe("Correction");
      const correction = { ...charge.correction, at: charge.attempt.startedAt };
      expect(column?.of({ ...charge, correction })).toBe(null);
    }
  });

  it("bills the cost that the provider reported, and lists the one of the price table", () => {
    const reported = rows.filter((row) => row["x_PriceSource"] === "provider");
    expect(sumOf(reported, "BilledCost")).toBe(femto(1_234));
    expect(sumOf(reported, "ListCost")).not.toBe(femto(1_234));
  });

  it("counts an unknown cost as 0, and says that its price is unknown", () => {
    const unknown = rows.filter((row) => row["x_PriceSource"] === "unknown");
    expect(unknown).toMatchObject([
      { BilledCost: "0", ConsumedQuantity: "15", SkuMeter: "Tokens" },
    ]);
  });

  it("has the same values as Parquet, with exact decimals", async () => {
    const { schema } = parquetMetadata(parquet);
    const decimals = schema.filter((element) => element.converted_type === "DECIMAL");
    const names = new Set(decimals.map(({ name }) => name));
    expect(decimals[0]).toMatchObject({ name: "BilledCost", scale: 15, precision: 38 });
    expect(await valuesOf(parquet, names)).toEqual(rows.map((row) => wholeValues(row, names)));
  });

  it("has the same values as Parquet for as many tokens as a correction can state", async () => {
    const [step] = (await gateway.steps.list(january)).data;
    const [charge] = step === undefined ? [] : [...chargesOf(step)];
    if (charge === undefined) throw new Error("No charges.");
    const quantity = Number.MAX_SAFE_INTEGER;
    const listCost = BigInt(quantity) * BigInt(quantity);
    const charges = [quantity, -quantity].map((some) => ({ ...charge, quantity: some, listCost }));
    async function* most(): AsyncGenerator<readonly Charge[]> {
      yield charges;
    }
    const names = new Set(["ConsumedQuantity", "ListCost", "PricingQuantity"]);
    const lines = parsed(await text(Readable.from(csvFile(most()))));
    const values = await valuesOf(await arrayBuffer(Readable.from(parquetFile(most()))), names);
    for (const name of names) {
      const column = focusColumns.findIndex((each) => each.name === name);
      expect(values.map((row) => row[column])).toEqual(
        lines.map((row) => String(amount(row[name]))),
      );
    }
  });

  it("lets other work go on between the columns of a Parquet row group", async () => {
    const metadata = parquetMetadata(parquet);
    expect(metadata.row_groups).toHaveLength(1);
    expect(metadata).toMatchObject({ num_rows: BigInt(rows.length) });
    let turns = 0;
    let next: NodeJS.Immediate;
    const turn = (): void => {
      turns += 1;
      next = setImmediate(turn);
    };
    next = setImmediate(turn);
    await arrayBuffer(Readable.from(parquetFile(batches())));
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(metadata.row_groups[0]?.columns.length ?? 0);
  });

  it("is a valid file without any rows", async () => {
    async function* nothing(): AsyncGenerator<readonly Charge[]> {}
    const csv = await text(Readable.from(csvFile(nothing())));
    expect(csv.split("\r\n")).toHaveLength(2);
    const empty = await arrayBuffer(Readable.from(parquetFile(nothing())));
    expect(parquetMetadata(empty)).toMatchObject({ num_rows: 0n });
  });
});

/** Calls of two keys: of every kind of token, with a reported cost, without a price, and one that never reached a model. */
async function fill({ chat, createKey, provider, gateway: own }: TestGateway): Promise<void> {
  const { chat: other } = await createKey({ userId: "ada", label: "laptop" });
  const send = async (request: Request): Promise<void> => {
    await (await own.fetch(request)).text();
  };
  provider.reply({ usage: { promptTokens: 1_000, completionTokens: 3, cachedTokens: 10 } });
  await send(chat({ model: "test/acme/mini", metadata: { ticket: "=T-17" } }));
  for (let call = 1; call <= 10; call++) {
    const promptTokens = 37 * call;
    const completionTokens = 11 * call;
    const usage = { promptTokens, completionTokens, cachedTokens: call, reasoningTokens: 3 * call };
    provider.reply({ usage });
    await send((call % 2 === 0 ? chat : other)({ model: "test/acme/mini" }));
    provider.reply({ usage: { promptTokens, completionTokens, cacheWriteTokens: call } });
    await send(chat({ model: "test/acme/large" }));
  }
  await send(chat({ model: "test/acme/free" }));
  await send(chat({ model: "test/acme/unlisted" }));
  provider.reply({ usage: { promptTokens: 100, completionTokens: 50, costNanoUsd: 1_234 } });
  await send(other({ model: "test/acme/mini" }));
}

/** Corrects a Step twice in February: its tokens, then its cost alone. */
async function correct(): Promise<void> {
  const { data } = await gateway.steps.list({ ...january, model: "test/acme/mini" });
  const first = data.at(-1);
  const of = { organizationId: january.organizationId, id: first?.id ?? "", actor: "finance" };
  const usage = { promptTokens: 0, completionTokens: 10 };
  await gateway.steps.correct({ ...of, usage, costNanoUsd: 1_000, reason: "invoice" });
  await gateway.steps.correct({ ...of, costNanoUsd: 4_242, reason: "invoice" });
}

function batches(): AsyncGenerator<readonly Charge[], void, void> {
  return (async function* () {
    for await (const step of gateway.steps.list(january)) yield [...chargesOf(step)];
  })();
}

function parsed(csv: string): readonly Row[] {
  const [names = [], ...lines] = csv.split("\r\n").slice(0, -1).map(fieldsOf);
  return lines.map((fields) =>
    Object.fromEntries(names.map((name, at) => [name, fields[at] ?? ""])),
  );
}

function fieldsOf(line: string): readonly string[] {
  const fields = `,${line}`.matchAll(/,(?:"((?:[^"]|"")*)"|([^,]*))/g);
  return [...fields].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare ?? "");
}

/** Reads a decimal as a whole number of the 15th digit after the decimal point. */
function amount(text = ""): bigint {
  const [, sign, before = "", after = ""] = /^(-?)(\d+)(?:\.(\d{1,15}))?$/.exec(text) ?? [];
  if (before === "") throw new Error(`not a decimal: ${text}`);
  const value = BigInt(before + after.padEnd(15, "0"));
  return sign === "-" ? -value : value;
}

function sumOf(some: readonly Row[], column: string): bigint {
  return some.reduce((sum, row) => sum + amount(row[column]), 0n);
}

function femto(nanoUsd: number | undefined): bigint {
  return BigInt(nanoUsd ?? -1) * 1_000_000n;
}

function whole(count: number | undefined): bigint {
  return BigInt(count ?? -1) * 10n ** 15n;
}

/** The values of a row, with decimals as whole numbers. */
function wholeValues(row: Row, decimals: ReadonlySet<string>): readonly string[] {
  return Object.entries(row).map(([name, value]) =>
    decimals.has(name) && value !== "" ? String(amount(value)) : value,
  );
}

/** The rows of a Parquet file as `wholeValues` shows those of a CSV file. */
async function valuesOf(
  file: ArrayBuffer,
  decimals: ReadonlySet<string>,
): Promise<readonly (readonly string[])[]> {
  const metadata = parquetMetadata(file);
  // The reader turns decimals into floats, so it gets them as bytes.
  const schema = metadata.schema.map(({ converted_type: type, ...element }) =>
    type === undefined || type === "DECIMAL" ? element : { ...element, converted_type: type },
  );
  const read = await parquetReadObjects({ file, metadata: { ...metadata, schema }, utf8: false });
  return read.map((row) =>
    Object.entries(row).map(([name, value]) => plain(value, decimals.has(name))),
  );
}

/** A value of a Parquet file as the CSV file writes it, and the whole number of a decimal. */
function plain(value: unknown, isDecimal: boolean): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) return value.toISOString().replace(".000", "");
  if (isDecimal && value instanceof Uint8Array)
    return String(BigInt.asIntN(128, BigInt(`0x${Buffer.from(value).toString("hex")}`)));
  return typeof value === "string" && /^(?!-\d)[=+@-]/.test(value) ? `'${value}` : String(value);
}
