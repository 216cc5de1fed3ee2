import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import type { PriceBook } from "../src/index.ts";
import { readOptions } from "../src/read-options.ts";
import { eventLog } from "./event-log.ts";

const model = { gateway: "test", vendor: "a", model: "one" };

function book(facts: object): PriceBook {
  return { priceOf: () => null, factsOf: () => JSON.parse(JSON.stringify(facts)) };
}

function factsOf(models: object, prices: PriceBook) {
  const log = eventLog();
  const providers = { test: scriptedProvider({ models: { "a/one": models } }) };
  const { observers } = log;
  const line = readOptions({ store: memoryStore(), providers, prices, observers });
  return { facts: line.modelFacts(model), seen: log.seen };
}

describe("a model's facts", () => {
  it("come from the configuration, fact by fact, otherwise from the price book", () => {
    const known = book({ maxOutputTokens: 64_000, reasons: true });
    expect(factsOf({}, known).facts).toEqual({ maxOutputTokens: 64_000, reasons: true });
    expect(factsOf({ maxOutputTokens: 10 }, known).facts).toEqual({
      maxOutputTokens: 10,
      reasons: true,
    });
    expect(factsOf({ reasons: false }, known).facts).toEqual({
      maxOutputTokens: 64_000,
      reasons: false,
    });
  });

  it("are unknown if the host's own book fails or returns nonsense", () => {
    const nonsense = book({ maxOutputTokens: -1, reasons: "yes" });
    expect(factsOf({}, nonsense).facts).toEqual({ maxOutputTokens: null, reasons: null });
    const failing: PriceBook = {
      priceOf: () => null,
      factsOf() {
        throw new Error("no facts today");
      },
    };
    const { facts, seen } = factsOf({}, failing);
    expect(facts).toEqual({ maxOutputTokens: null, reasons: null });
    expect(seen).toContainEqual(
      expect.objectContaining({ type: "gateway.degraded", what: "prices" }),
    );
  });
});
