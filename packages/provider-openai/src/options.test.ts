import { describe, expect, it } from "vitest";
import { openaiCompatible } from "./openai-compatible.ts";
import { type OpenaiCompatibleOptions, readOptions } from "./options.ts";

const good: OpenaiCompatibleOptions = { baseURL: "https://api.example.com/v1", apiKey: "sk-1" };
const problems = (over: Partial<OpenaiCompatibleOptions>): readonly string[] =>
  problemsOf({ ...good, ...over });
const problemsOf = (options: unknown): readonly string[] =>
  readOptions(options).problems.map(({ message }) => message);

describe("the options of a provider", () => {
  it("are accepted if valid", () => {
    const models = { "openai/gpt-5-mini": { input: "0.25", output: 2, maxOutputTokens: 128_000 } };
    for (const apiKey of ["sk-1", null, () => "sk-1", async () => "sk-1"])
      expect(
        problems({ apiKey, models, headers: { "X-Title": "App", "User-Agent": "app" } }),
      ).toEqual([]);
    expect(problemsOf({ baseURL: good.baseURL, connection: "customer" })).toEqual([]);
  });

  it("reject a credential that is missing or cannot be sent, without showing it", () => {
    expect(problems({ apiKey: undefined })).toEqual([
      expect.stringContaining("`apiKey` is undefined"),
    ]);
    for (const apiKey of ["", " sk", "sk\r\nx: y", "schlüssel"]) {
      const [problem] = problems({ apiKey });
      expect(problem).toContain("apiKey");
      if (apiKey.length > 2) expect(problem).not.toContain(apiKey);
    }
    expect(problems({ connection: "customer" })).toEqual([
      expect.stringContaining("must not be set"),
    ]);
  });

  it("reject headers that would break a message or replace the provider's own", () => {
    for (const name of [
      "",
      "a b",
      "a:b",
      "é",
      "Authorization",
      "Host",
      "content-length",
      "Transfer-Encoding",
      "Accept-Encoding",
      "cookie",
      "proxy-authorization",
    ])
      expect(problems({ headers: { [name]: "x" } }), name).toHaveLength(1);
    for (const value of ["", "a\r\nb: c", "a\u0000", "ü", " a"])
      expect(problems({ headers: { "x-a": value } })).toEqual([expect.stringContaining("x-a")]);
  });

  it("reject invalid models and prices (S22)", () => {
    for (const id of ["gpt-5", "/gpt", "openai/", "a b/c", "a/b\n"])
      expect(problems({ models: { [id]: {} } }), id).toHaveLength(1);
    const broken: Record<string, never> = JSON.parse('{"a/b": null}');
    expect(problems({ models: broken })).toEqual([
      expect.stringContaining("must be { input, output }"),
    ]);
    for (const price of [-1, Number.NaN, Number.POSITIVE_INFINITY, "free", "-0.1", 1e-10])
      for (const field of ["input", "output", "cachedInput"])
        expect(problems({ models: { "a/b": { input: 1, output: 1, [field]: price } } })).toEqual([
          expect.stringContaining(field),
        ]);
    for (const maxOutputTokens of [0, -1, 1.5, Number.NaN])
      expect(problems({ models: { "a/b": { maxOutputTokens } } })).toHaveLength(1);
  });

  it.each([
    [undefined, ["baseURL", "apiKey"]],
    [null, ["baseURL", "apiKey"]],
    ["https://a", [""]],
    [{ ...good, modles: {} }, ["modles"]],
    [{ ...good, connection: "Platform" }, ["connection"]],
    [{ ...good, listModels: "yes" }, ["listModels"]],
    [{ ...good, maxTokensField: "tokens" }, ["maxTokensField"]],
    [{ ...good, developerRole: "user" }, ["developerRole"]],
    [{ ...good, forwardStore: 1 }, ["forwardStore"]],
    [{ ...good, billing: { reportedCost: "always" } }, ["billing.reportedCost"]],
    [{ ...good, open: 1, vendor: 2 }, ["open", "vendor"]],
    [{ ...good, headers: [] }, ["headers"]],
    [{ ...good, clock: 1 }, ["clock"]],
    [{ ...good, connection: "customer", apiKey: null, listModels: true }, ["listModels"]],
  ])("name the path of each fault of %j", (written, paths) => {
    expect([...new Set(readOptions(written).problems.map(({ path }) => path))].sort()).toEqual(
      [...paths].sort(),
    );
    // As untyped JavaScript would call it.
    expect(Reflect.apply(openaiCompatible, undefined, [written]).problems).not.toEqual([]);
  });
});
