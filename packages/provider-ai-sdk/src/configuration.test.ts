import { createAnthropic } from "@ai-sdk/anthropic";
import { MockLanguageModelV4 } from "ai/test";
import { describe, expect, it } from "vitest";
import { readOptions } from "./configuration.ts";
import type { AiSdkOptions, Connect } from "./options.ts";

const connect: Connect = ({ fetch, credential }) => createAnthropic({ apiKey: credential, fetch });
const model = new MockLanguageModelV4();

/** Calls it as untyped JavaScript would. */
const problems = (source: unknown, options: unknown = {}): readonly string[] =>
  readOptions(source, options).problems;

describe("the configuration", () => {
  it("accepts a language model, an AI SDK provider or a function", () => {
    for (const source of [model, createAnthropic({ apiKey: "sk-1" }), connect])
      expect(problems(source, { models: { "a/b": { input: "0.25", output: 1 } } })).toEqual([]);
    const customer: AiSdkOptions = { connection: "customer", hosts: ["api.anthropic.com"] };
    expect(problems(connect, customer)).toEqual([]);
  });

  it.each([undefined, null, "anthropic/claude", 7, {}])("refuses %s as a model", (source) => {
    expect(problems(source)).toEqual([expect.stringContaining("aiSdk takes")]);
  });

  it("refuses models of an unknown version", () => {
    const older = { specificationVersion: "v2", doGenerate() {}, doStream() {} };
    expect(problems(older)).toEqual([expect.stringContaining("v3 or v4")]);
  });

  it("refuses options that need the function form", () => {
    expect(problems(model, { connection: "customer", hosts: ["a"] })).toEqual([
      expect.stringContaining("a customer-owned connection needs the form"),
      expect.stringContaining("hosts needs the form"),
    ]);
    expect(problems(model, { apiKey: "sk-secret" })).toEqual([
      expect.not.stringContaining("sk-secret"),
    ]);
  });

  it.each([
    [{ connection: "both" }, "`connection` must be"],
    [{ connection: "customer", apiKey: "sk-1" }, "`apiKey` must not be set"],
    [{ apiKey: undefined }, "`apiKey` is required"],
    [{ apiKey: 7 }, "`apiKey` must be"],
    [{ apiKey: "" }, "`apiKey` must be"],
    [{ hosts: ["https://api.test"] }, "`hosts[0]` is not a host name"],
    [{ hosts: "api.test" }, "`hosts` must be a list"],
    [{ modles: {} }, "Unknown option: modles."],
    [{ providerOptions: {} }, "`providerOptions` must be a function"],
    [{ billing: { autoTiers: 1 } }, "`billing.autoTiers` must be a list"],
    [{ open: "yes" }, "`open` must be true or false"],
    [{ clock: 1 }, "`clock` must be a clock"],
    ["sk-1", "must be an object"],
    [{ models: { b: {} } }, "must be of the form <vendor>/<model>"],
    [{ models: { "a/b": null } }, "must be { input, output }"],
    [{ models: { "a/b": { input: -1, output: 1 } } }, "input` must be US dollars"],
    [{ models: { "a/b": { maxOutputTokens: 0 } } }, "maxOutputTokens` must be"],
  ])("refuses %j", (options, problem) => {
    expect(problems(connect, options)).toEqual([expect.stringContaining(problem)]);
  });
});
