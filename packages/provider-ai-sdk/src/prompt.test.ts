import type { Message, ProviderState } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { type Image, promptOf } from "./prompt.ts";

const prompt = (...messages: readonly Message[]) => promptOf(messages, (image: Image) => image);
const text = (text: string) => ({ type: "text" as const, text });
const showing = (url: string) =>
  prompt({ role: "user", content: [text("What?"), { type: "image_url", image_url: { url } }] });
const called = (id: string, name: string, input: string) => ({
  id,
  type: "function" as const,
  function: { name, arguments: input },
});

describe("the prompt", () => {
  it("has instructions, questions and answers", () => {
    expect(
      prompt(
        { role: "system", content: [text("Be "), text("brief.")] },
        { role: "developer", content: "In French." },
        { role: "user", content: "Hi" },
        { role: "assistant", content: "Salut", refusal: "Non." },
      ),
    ).toEqual([
      { role: "system", content: "Be brief." },
      { role: "system", content: "In French." },
      { role: "user", content: [text("Hi")] },
      { role: "assistant", content: [text("Salut"), text("Non.")] },
    ]);
  });

  it("returns thinking, signatures and cache breakpoints to the provider", () => {
    const state = (fields: ProviderState["fields"]): { state: ProviderState } => ({
      state: { from: "direct/anthropic", fields },
    });
    const cacheControl = { type: "ephemeral" };
    expect(
      prompt(
        { role: "user", content: "Hi", ...state({ cache_control: cacheControl }) },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              ...called("a", "add", "{}"),
              ...state({ extra_content: { google: { thought_signature: "t" } } }),
            },
            {
              ...called("b", "add", "{}"),
              ...state({ extra_content: { provider_metadata: '{"openai":{"itemId":"fc"}}' } }),
            },
          ],
          ...state({
            reasoning_details: [
              {
                type: "reasoning.text",
                index: 0,
                text: "Hm.",
                data: '{"anthropic":{"signature":"s"}}',
              },
              {
                type: "reasoning.encrypted",
                index: 1,
                data: '{"anthropic":{"redactedData":"r"}}',
              },
              { type: "reasoning.encrypted", index: 2, data: "not JSON" },
            ],
          }),
        },
        { role: "assistant", content: "", ...state({ reasoning_content: "Plain." }) },
      ),
    ).toEqual([
      {
        role: "user",
        content: [text("Hi")],
        providerOptions: {
          anthropic: { cacheControl },
          bedrock: { cachePoint: { type: "default" } },
        },
      },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "Hm.", providerOptions: { anthropic: { signature: "s" } } },
          { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "r" } } },
          {
            type: "tool-call",
            toolCallId: "a",
            toolName: "add",
            input: {},
            providerOptions: { google: { thoughtSignature: "t" } },
          },
          {
            type: "tool-call",
            toolCallId: "b",
            toolName: "add",
            input: {},
            providerOptions: { openai: { itemId: "fc" } },
          },
        ],
      },
      { role: "assistant", content: [{ type: "reasoning", text: "Plain." }] },
    ]);
  });

  it("puts the results of one round of tool calls in one message, with the tools' names", () => {
    const [, assistant, tool] = prompt(
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: "",
        tool_calls: [
          called("a", "add", '{"x":1}'),
          called("b", "now", ""),
          called("c", "say", "no"),
        ],
      },
      { role: "tool", tool_call_id: "a", content: "2" },
      { role: "tool", tool_call_id: "b", content: [text("noon")] },
    );
    expect(assistant).toEqual({
      role: "assistant",
      content: [
        { type: "tool-call", toolCallId: "a", toolName: "add", input: { x: 1 } },
        { type: "tool-call", toolCallId: "b", toolName: "now", input: {} },
        { type: "tool-call", toolCallId: "c", toolName: "say", input: { arguments: "no" } },
      ],
    });
    const result = (toolCallId: string, toolName: string, value: string) => ({
      type: "tool-result",
      toolCallId,
      toolName,
      output: { type: "text", value },
    });
    expect(tool).toEqual({
      role: "tool",
      content: [result("a", "add", "2"), result("b", "now", "noon")],
    });
  });

  it("has images by URL and as data", () => {
    expect(showing("data:image/png;base64,iVBORw0KGgo=")[0]?.content).toEqual([
      text("What?"),
      { mediaType: "image/png", data: "iVBORw0KGgo=" },
    ]);
    expect(showing("https://example.com/a.png")[0]?.content).toEqual([
      text("What?"),
      { mediaType: "image/*", data: new URL("https://example.com/a.png") },
    ]);
  });

  it.each(["file:///etc/passwd", "data:text/html,hi", "https://", "a.png"])(
    "refuses %s as an image",
    (url) => {
      expect(() => showing(url)).toThrowError(
        expect.objectContaining({ status: 400, param: "messages" }),
      );
    },
  );

  it("refuses the result of a call that was never made", () => {
    expect(() => prompt({ role: "tool", tool_call_id: "a", content: "2" })).toThrowError(
      expect.objectContaining({ status: 400, param: "messages" }),
    );
  });
});
