import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { modelName } from "./namespaces.ts";
import { outputItems } from "./output-items.ts";
import { parseResponse, type ResponseCall } from "./parse.ts";
import { toMessages } from "./to-messages.ts";

const limits = { ...defaultLimits, tools: 3, bodyBytes: 10_000 };
const tool = (name: string, more: object = {}) => ({ type: "function", name, ...more });
const group = (name: string, tools: readonly object[], more: object = {}) => ({
  type: "namespace",
  name,
  tools,
  ...more,
});
const read = (tools: readonly object[], input: unknown = "Hi"): ResponseCall =>
  parseResponse({ model: "sim/acme/echo", input, tools }, limits);

function refusal(...tools: readonly object[]): unknown {
  try {
    return read(tools);
  } catch (error) {
    return error;
  }
}

describe("functions in a namespace", () => {
  it("are offered one by one, each under its own name", () => {
    const crm = group("crm", [tool("find", { description: "Finds." }), tool("add")], {
      description: "Customers.",
    });
    const { options, echo } = read([tool("find"), crm]);
    expect(options.tools).toEqual([
      { name: "find" },
      { name: "crm__find", description: "Customers.\n\nFinds." },
      { name: "crm__add", description: "Customers." },
    ]);
    expect(echo.tools[1]).toMatchObject({ type: "namespace", name: "crm", tools: [{}, {}] });
  });

  it("have the client's names in answers, and are recognized in histories", () => {
    const { namespaces } = read([group("crm", [tool("find")])]);
    const called = { name: "crm__find", arguments: "{}" };
    const call = { id: "call_1", type: "function", function: called } as const;
    const items = outputItems(
      {
        parts: [{ type: "tool-call", call }],
        logprobs: [],
        finishReason: "tool_calls",
        usage: {},
      },
      "resp_0190a00000007000800000000000000a",
      namespaces,
    );
    expect(items).toMatchObject([{ type: "function_call", namespace: "crm", name: "find" }]);
    expect(toMessages(read([], items).input)).toMatchObject([{ tool_calls: [call] }]);
  });

  it("get names that upstreams accept, even if the client's are too long", () => {
    const [one, other] = ["a", "b"].map((end) =>
      modelName({ namespace: "n".repeat(60), name: `${"f".repeat(60)}${end}` }),
    );
    expect([one?.length, other?.length]).toEqual([64, 64]);
    expect(one).not.toBe(other);
    expect(one).toMatch(/^[a-z0-9_]+$/);
  });

  it("are refused if the model could not tell two of them apart, or if there are too many", () => {
    const fault = (code: string, param: string) => expect.objectContaining({ code, param });
    const long = { description: "é".repeat(limits.bodyBytes / 4) };
    expect(read([group("a", [tool("b"), tool("c")], long)]).options.tools).toHaveLength(2);
    expect(refusal(tool("z"), group("a", [tool("b"), tool("c"), tool("d")], long))).toEqual(
      fault("invalid_value", "tools[1].description"),
    );
    expect(refusal(tool("a__b"), group("a", [tool("b")]))).toEqual(
      fault("invalid_value", "tools[1].tools[0].name"),
    );
    expect(refusal(group("a", [tool("b__c")]), group("a__b", [tool("c")]))).toEqual(
      fault("invalid_value", "tools[1].tools[0].name"),
    );
    expect(refusal(group("a", [tool("b"), tool("c")]), tool("d"), tool("e"))).toEqual(
      fault("invalid_value", "tools"),
    );
    expect(refusal(group("a", []))).toEqual(fault("invalid_value", "tools[0].tools"));
    expect(refusal(group("a", [{ type: "custom", name: "b" }]))).toEqual(
      fault("unsupported_value", "tools[0].tools[0].type"),
    );
    expect(refusal({ type: "custom", name: "b" })).toEqual(
      fault("unsupported_value", "tools[0].type"),
    );
  });
});
