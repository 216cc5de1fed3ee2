import { anthropic } from "@tollgate/provider-anthropic";
import { openaiCompatible } from "@tollgate/provider-openai";
import { describe, expect, it } from "vitest";
import { anthropicOptions, environmentGateways } from "./environment-gateways.ts";

const variables = [
  "OPENAI_API_KEY",
  "OPENROUTER_API_KEY",
  "GROQ_API_KEY",
  "MISTRAL_API_KEY",
  "DEEPSEEK_API_KEY",
  "XAI_API_KEY",
  "TOGETHER_API_KEY",
  "FIREWORKS_API_KEY",
  "CEREBRAS_API_KEY",
  "GEMINI_API_KEY",
];

describe("gateways from the environment", () => {
  it("are the ones with a key in the environment", () => {
    expect(environmentGateways({ OPENAI_API_KEY: "", OTHER: "x" })).toEqual({});
    const { groq, ...others } = environmentGateways({ GROQ_API_KEY: "secret" });
    expect(groq).toMatchObject({ apiKey: "secret", baseURL: "https://api.groq.com/openai/v1" });
    expect(others).toEqual({});
  });

  it("are all well-formed", () => {
    const all = environmentGateways(Object.fromEntries(variables.map((name) => [name, "secret"])));
    expect(Object.keys(all)).toHaveLength(variables.length);
    for (const options of Object.values(all))
      expect(openaiCompatible(options).problems).toEqual([]);
  });

  it("include Anthropic, with its own protocol", () => {
    expect(anthropicOptions({ ANTHROPIC_API_KEY: "" })).toBeNull();
    const options = anthropicOptions({ ANTHROPIC_API_KEY: "secret" });
    expect(options && anthropic(options)).toMatchObject({ problems: [], vendor: "anthropic" });
  });

  it("use a vendor's own names for its models", () => {
    const { openai, openrouter } = environmentGateways({
      OPENAI_API_KEY: "a",
      OPENROUTER_API_KEY: "b",
    });
    expect(openai?.vendor).toBe("openai");
    expect(openrouter).not.toHaveProperty("vendor");
  });

  it("include Ollama and Azure if the environment has their addresses", () => {
    expect(environmentGateways({ AZURE_OPENAI_API_KEY: "a" })).toEqual({});
    const { azure, ollama } = environmentGateways({
      OLLAMA_HOST: "127.0.0.1:11434",
      AZURE_OPENAI_ENDPOINT: "https://acme.openai.azure.com/",
      AZURE_OPENAI_API_KEY: "secret",
    });
    expect(ollama).toMatchObject({ baseURL: "http://127.0.0.1:11434/v1", apiKey: null });
    expect(azure).toMatchObject({ baseURL: "https://acme.openai.azure.com/openai/v1" });
    for (const options of [azure, ollama])
      expect(options && openaiCompatible(options).problems).toEqual([]);
  });
});
