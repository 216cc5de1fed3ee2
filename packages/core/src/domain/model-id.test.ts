import { describe, expect, it } from "vitest";
import { formatModelId, parseModelId } from "./model-id.ts";
import { selectsModel } from "./model-pattern.ts";

describe("a model id", () => {
  it.each([
    ["gw/openai/gpt-5", ["gw", "openai", "gpt-5"]],
    ["gw/hf/meta-llama/Llama-3.3:free", ["gw", "hf", "meta-llama/Llama-3.3:free"]],
    ["gw/v/...", ["gw", "v", "..."]],
    ["gw/v/.hidden", ["gw", "v", ".hidden"]],
    ["gw/@cf/%2e%2e", ["gw", "@cf", "%2e%2e"]],
    ["gw/v/模型-é-🙂", ["gw", "v", "模型-é-🙂"]],
    [`gw/v/${"m".repeat(250)}`, ["gw", "v", "m".repeat(250)]],
  ])("is read from %j and written the same", (text, [gateway, vendor, model]) => {
    const id = parseModelId(text);
    expect(id).toEqual({ gateway, vendor, model });
    expect(id && formatModelId(id)).toBe(text);
  });

  it.each([
    ...["", "gw", "gw/v", "gw/v/", "/v/m", "gw//m", "gw/v/m/", "gw/v//m", "gw/v/a//b"],
    ...["./v/m", "gw/../m", "gw/v/..", "gw/v/./m", "gw/v/a/../m", "gw/v/m/."],
    ...[" gw/v/m", "gw/v/m ", "gw/v/a b", "gw/v/m\n", "gw/v\t/m", "gw/v/a\u00A0b", "gw/v/\u3000"],
    ...["gw/v/m\u0000", "gw/v/m\u007F", "gw/v/a\u200Bb", "gw/v/\u202Em", "gw/v/m\uFEFF"],
    ...["gw/v/\uD800", "gw/v/\uE000", "gw/v/\u0378", `gw/v/${"m".repeat(251)}`],
  ])("is not read from %j", (text) => {
    expect(parseModelId(text)).toBeNull();
  });
});

describe("a model pattern", () => {
  const selected = (pattern: string, text: string) => {
    const id = parseModelId(text);
    return id !== null && selectsModel(pattern, id);
  };

  it.each([
    ["gw/openai/gpt-*", "gw/openai/GPT-5"],
    ["GW/OpenAI/GPT-*", "gw/openai/gpt-5"],
    ["gw/*/*Z[", "gw/v/az["],
    ["*/*/*", "gw/v/a/b"],
    ["gw/hf/*/llama", "gw/hf/meta/Llama"],
  ])("%s selects %s, ignoring ASCII case", (pattern, text) => {
    expect(selected(pattern, text)).toBe(true);
  });

  it.each([
    ["gw/openai/gpt-*", "gw/openai2/gpt-5"],
    ["gw/v/\u212A", "gw/v/k"],
    ["gw/v/\u00E9", "gw/v/\u00C9"],
    ["gw/v/a[", "gw/v/a{"],
    ["gw/v/@", "gw/v/`"],
    ["gw/*/m", "gw/a/b/m"],
  ])("%s does not select %s", (pattern, text) => {
    expect(selected(pattern, text)).toBe(false);
  });
});
