import { describe, expect, it } from "vitest";
import type { AssistantMessage, Message } from "../domain/message.ts";
import { canonicalMessage } from "./canonical-message.ts";

const calling = (...texts: readonly string[]): AssistantMessage => ({
  role: "assistant",
  tool_calls: texts.map((text, index) => ({
    id: `call_${index}`,
    type: "function",
    function: { name: "f", arguments: text },
  })),
});
const isSame = (a: Message, b: Message): boolean => canonicalMessage(a) === canonicalMessage(b);
const areSame = (a: string, b: string): boolean => isSame(calling(a), calling(b));

describe("the canonical form of tool arguments (section 3.6)", () => {
  it.each([
    ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }'],
    ["1000", "1e3"],
    ["1000", "1000.0"],
    ["0.001", "1e-3"],
    ["-0.0", "-0"],
    ["1000000000000000000000.0", "1e21"],
    ["12300000000000000000000", "1.23e22"],
    ["0.00000000000000000000000000000000012", "1.2e-34"],
    ["", "{}"],
  ])("treats %s and %s as equal", (a, b) => {
    expect(areSame(a, b)).toBe(true);
  });

  it.each([
    ["9007199254740993", "9007199254740992"],
    ["0.10000000000000000001", "0.1"],
    ["1e400", "1e401"],
    ["100000000000000000000000000001", "100000000000000000000000000010"],
    ["-1000000000000000000000000000000000", "1000000000000000000000000000000000"],
    ["[]", "{}"],
    ['""', "{}"],
    ["null", "{}"],
    ["[1,2]", "[2,1]"],
  ])("treats %s and %s as different", (a, b) => {
    expect(areSame(a, b)).toBe(false);
  });

  it("compares the arguments of the second call, too", () => {
    expect(isSame(calling("{}", '{"a":1}'), calling("", '{"a":1.0}'))).toBe(true);
    expect(isSame(calling("{}", '{"a":1}'), calling("{}", '{"a":2}'))).toBe(false);
  });

  it.each([
    ["zeros", "0".repeat(2_000_000)],
    ["zeros after a digit", `1${"0".repeat(2_000_000)}1`],
    ["zeros after a point", `1.${"0".repeat(2_000_000)}1`],
    ["nines", "9".repeat(2_000_000)],
    ["an exponent", `1e${"0".repeat(2_000_000)}1`],
  ])("reads a number of two million %s in linear time (H1)", (_, number) => {
    const text = `{"a":${number}}`;
    expect(areSame(text, text)).toBe(true);
    expect(areSame(text, `{"a":${number}1}`)).toBe(false);
  });

  it("compares arguments as text if they nest too deeply", () => {
    const deep = `${"[".repeat(100_000)}1${"]".repeat(100_000)}`;
    expect(areSame(deep, deep)).toBe(true);
    expect(areSame(deep, ` ${deep}`)).toBe(false);
    const shallow = `${"[".repeat(60)}1${"]".repeat(60)}`;
    expect(areSame(shallow, ` ${shallow}`)).toBe(true);
  });

  it("compares arguments as text if an object has a name twice, of which only the last would count", () => {
    const shown = '{"command":"ls"}';
    const repeated = '{"command":"rm","command":"ls"}';
    expect(areSame(shown, ` ${shown}`)).toBe(true);
    expect(areSame(shown, repeated)).toBe(false);
    expect(areSame(`[{"a":{}},${shown}]`, `[{"a":{}},${repeated}]`)).toBe(false);
    expect(areSame(repeated, repeated)).toBe(true);
  });

  it("reads a bounded number of values in all calls of a message together", () => {
    const wide = `[${"1,".repeat(6_000)}1]`;
    expect(areSame(wide, ` ${wide}`)).toBe(true);
    expect(isSame(calling(wide, wide), calling(` ${wide}`, wide))).toBe(true);
    expect(isSame(calling(wide, wide), calling(wide, ` ${wide}`))).toBe(false);
  });
});

describe("the canonical form of messages (section 3.6)", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } } as const;

  it.each<readonly [Message, string]>([
    [{ role: "system", content: "a" }, '["system",null,"a"]'],
    [{ role: "user", content: "a", name: "ada" }, '["user","ada","a"]'],
    [{ role: "user", content: [{ type: "text", text: "a" }] }, '["user",null,"a"]'],
    [{ role: "user", content: [] }, '["user",null,[]]'],
    [
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      '["user",null,["a","b"]]',
    ],
    [
      { role: "user", content: [image] },
      '["user",null,[{"url":"data:image/png;base64,AA==","detail":null}]]',
    ],
    [
      {
        role: "user",
        content: [{ ...image, image_url: { ...image.image_url, detail: "low" } }],
      },
      '["user",null,[{"url":"data:image/png;base64,AA==","detail":"low"}]]',
    ],
    [{ role: "tool", tool_call_id: "call_0", content: "a" }, '["tool","call_0","a"]'],
    [{ role: "assistant", content: "a" }, '["assistant",["a"],[]]'],
    [{ role: "assistant", content: "", refusal: "no" }, '["assistant",["no"],[]]'],
    [
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "refusal", refusal: "no" },
        ],
      },
      '["assistant",["a","no"],[]]',
    ],
    [
      calling('{"b":1,"a":[]}', ""),
      '["assistant",[],[["call_0","f","j{\\"a\\":[],\\"b\\":1}"],["call_1","f","j{}"]]]',
    ],
    [
      calling("{", "9007199254740993"),
      '["assistant",[],[["call_0","f","t{"],["call_1","f","j9007199254740993"]]]',
    ],
  ])("of %j is %s", (message, text) => {
    expect(canonicalMessage(message)).toBe(text);
  });

  it("omits the name of an assistant message, and keeps those of others", () => {
    const assistant: Message = { role: "assistant", content: "a" };
    const user: Message = { role: "user", content: "a" };
    expect(isSame(assistant, { ...assistant, name: "model" })).toBe(true);
    expect(isSame(user, { ...user, name: "ada" })).toBe(false);
  });

  it("omits provider state everywhere", () => {
    const state = { from: "g/v", fields: { reasoning_content: "because" } };
    const [call] = calling("{}").tool_calls ?? [];
    const content = [{ type: "text", text: "a" }] as const;
    const plain: Message = { role: "assistant", content, tool_calls: call ? [call] : [] };
    const stated: Message = {
      role: "assistant",
      content: [{ type: "text", text: "a", state }],
      tool_calls: call ? [{ ...call, state }] : [],
      state,
    };
    expect(isSame(plain, stated)).toBe(true);
    expect(isSame({ role: "user", content }, { role: "user", content, state })).toBe(true);
  });
});

describe("the canonical form of tool results", () => {
  it("differs for a tool that failed with the same text", () => {
    const result = { role: "tool", tool_call_id: "c", content: "No such file" } as const;
    expect(isSame(result, { ...result, is_error: true })).toBe(false);
    expect(isSame(result, { ...result, content: [{ type: "text", text: "No such file" }] })).toBe(
      true,
    );
  });
});
