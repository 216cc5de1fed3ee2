import { definePolicy, forbid, permit } from "@tollgate/core/policy";

/** Acme's rules for two gateways, one of them in house: who may send which data where, and with which obligations. */
export const policy = definePolicy({
  rules: [
    permit(
      "internal-work",
      { gateway: ["openrouter", "house"], upTo: "D1_INTERNAL" },
      { fallbacks: ["house/meta/llama-4"] },
    ),
    permit(
      "confidential-in-house",
      { gateway: "house", from: "D2_CONFIDENTIAL", upTo: "D2_CONFIDENTIAL" },
      { maxOutputTokens: 500, transcript: "digest" },
    ),
    forbid("no-previews", { model: "*/*/*-preview" }, { reason: "previews are not reviewed yet" }),
    forbid(
      "no-images-outside",
      { gateway: "openrouter", images: true },
      { reason: "images stay in the house" },
    ),
    forbid("interns-have-no-tools", { user: ["intern-1", "intern-2"], tools: true }),
  ],
});

/** Acme's budgets: three dollars a month for the company, and four requests an hour for each key. */
export const budgets = [
  {
    id: "acme-month",
    scope: { organization: "acme" },
    limit: { usd: 3 },
    period: "month",
    mode: "hard",
  },
  {
    id: "key-hour",
    scope: { each: "key" },
    limit: { requests: 4 },
    period: "hour",
    mode: "hard",
  },
] as const;

/** The models' prices, in US dollars per million tokens, and their longest answers. */
export const models = {
  "openai/gpt-5": { input: "1.25", output: "10", maxOutputTokens: 128_000 },
  "meta/llama-4": { input: "0.2", output: "0.6" },
};
