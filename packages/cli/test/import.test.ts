import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "./command-line.ts";
import { runHere } from "./in-process.ts";

const folder = temporaryFolder();
const secret = "sk-canary-0123456789abcdef0123";
const file = join(folder, "litellm.yaml");

const litellm = `
model_list:
  - model_name: gpt-5
    litellm_params: { model: openai/gpt-5, api_key: os.environ/MY_OPENAI_KEY, rpm: 60, weight: 3 }
  - model_name: gpt-5
    litellm_params: { model: azure/gpt5-deployment, api_base: "https://acme.openai.azure.com/openai/v1", api_key: ${secret}, api_version: "2026" }
  - model_name: llama
    litellm_params: { model: hosted_vllm/llama-3, api_base: "http://10.0.0.1:8000/v1", input_cost_per_token: 0.0000002, output_cost_per_token: 0.000001, tpm: 90000 }
  - model_name: claude
    litellm_params: { model: bedrock/claude }
  - model_name: sonnet
    litellm_params: { model: anthropic/claude-sonnet-5, api_base: "https://claude.acme.test", api_key: os.environ/ANTHROPIC_API_KEY }
  - model_name: anthropic/*
    litellm_params: { model: anthropic/*, api_key: os.environ/ANTHROPIC_API_KEY }
router_settings: { model_group_alias: { best: gpt-5, none: nothing }, routing_strategy: usage }
litellm_settings: { max_budget: 100, budget_duration: 30d, drop_params: true }
general_settings: { master_key: ${secret} }
`;

it("imports models, aliases and limits of LiteLLM, and no secret", async () => {
  writeFileSync(file, litellm);
  const { code, output, errors } = await runHere(["import", "litellm", file]);
  expect(code).toBe(0);
  expect(output + errors).not.toContain("canary");
  const json = await runHere(["import", "litellm", file, "--json"]);
  expect(JSON.parse(json.output)).toMatchObject({
    providers: {
      openai: { type: "openai", apiKey: "$" + "{MY_OPENAI_KEY}", models: { "openai/gpt-5": {} } },
      anthropic: {
        type: "anthropic",
        apiKey: "$" + "{ANTHROPIC_API_KEY}",
        baseURL: "https://claude.acme.test",
        models: { "anthropic/claude-sonnet-5": {} },
      },
      azure: { apiKey: "$" + "{AZURE_API_KEY}", models: { "openai/gpt5-deployment": {} } },
      "openai-compatible": {
        apiKey: null,
        models: { "local/llama-3": { input: "0.2", output: "1" } },
      },
      balanced: {
        models: {
          "gpt-5": {
            targets: [
              { model: "openai/openai/gpt-5", weight: 3 },
              { model: "azure/openai/gpt5-deployment", weight: 1 },
            ],
          },
        },
      },
    },
    aliases: {
      "gpt-5": "balanced/any/gpt-5",
      best: "balanced/any/gpt-5",
      llama: "openai-compatible/local/llama-3",
      sonnet: "anthropic/anthropic/claude-sonnet-5",
    },
    rateLimits: [
      { scope: { model: "openai/openai/gpt-5" }, limit: { requests: 60 }, per: "minute" },
      { scope: { model: "openai-compatible/local/llama-3" }, limit: { tokens: 90_000 } },
    ],
    budgets: [{ limit: { usd: 100 }, period: "month" }],
  });
  for (const warning of [
    "general_settings was left out.",
    "model_list[1].litellm_params.api_version was left out.",
    "model_list[1].litellm_params.api_key has a secret, which was not copied: put it in AZURE_API_KEY.",
    "model_list[3].litellm_params.model bedrock/claude was left out: it has no counterpart.",
    "model_list[5].litellm_params.model anthropic/* was left out",
    "router_settings.routing_strategy was left out.",
    "router_settings.model_group_alias.none was left out.",
    "litellm_settings.drop_params was left out.",
    "litellm_settings.budget_duration became a calendar month in UTC.",
  ])
    expect(errors).toContain(`warning: ${warning}`);
  const configuration = join(folder, "tollgate.config.yaml");
  writeFileSync(configuration, output);
  const keys = {
    ANTHROPIC_API_KEY: "a",
    MY_OPENAI_KEY: "one-key",
    AZURE_API_KEY: "another-key",
  };
  const checked = await runHere(["check", "--config", configuration], keys);
  expect(checked).toMatchObject({ code: 0, errors: "" });
});

it("warns of values that it can't take over, and of an address without the path of the protocol", async () => {
  const targets = Array.from(
    { length: 17 },
    (_, at) => `  - { model_name: many, litellm_params: { model: openai/m${at} } }`,
  );
  writeFileSync(
    file,
    `
model_list:
  - model_name: local
    litellm_params: { model: ollama/llama3, api_base: "http://127.0.0.1:11434", rpm: "60", tpm: 1.5, weight: heavy }
  - { model_name: half, litellm_params: { model: openai/half, input_cost_per_token: 0.000001, weight: 0 } }
  - { model_name: text, litellm_params: { model: openai/text, input_cost_per_token: "1", output_cost_per_token: 1 } }
${targets.join("\n")}
litellm_settings: { max_budget: "100", budget_duration: 30d }
`,
  );
  const { code, errors } = await runHere(["import", "litellm", file]);
  expect(code).toBe(0);
  for (const warning of [
    "model_list[0].litellm_params.rpm was left out.",
    "model_list[0].litellm_params.tpm was left out.",
    "model_list[0].litellm_params.weight was left out.",
    "model_list[0].litellm_params.api_base has no path in LiteLLM: make baseURL end in /v1.",
    "model_list[1].litellm_params.weight was left out.",
    "model_list[1].litellm_params.input_cost_per_token was left out.",
    "model_list[2].litellm_params.input_cost_per_token was left out.",
    "model_list[2].litellm_params.output_cost_per_token was left out.",
    "model_name many has 17 deployments: the 17th and later were left out.",
    "litellm_settings.max_budget was left out.",
  ])
    expect(errors).toContain(`warning: ${warning}`);
  expect(errors).not.toContain("budget_duration");
});

it("rejects a file that isn't LiteLLM's, with its path", async () => {
  writeFileSync(file, "model_list: [{ model_name: x }]");
  expect(await runHere(["import", "litellm", file])).toMatchObject({
    code: 1,
    output: "",
    errors: expect.stringContaining("`model_list[0].litellm_params` is required"),
  });
});
