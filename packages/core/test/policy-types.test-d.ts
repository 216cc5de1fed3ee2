import { expectTypeOf, test } from "vitest";
import { createGateway } from "../src/index.ts";
import { combine, definePolicy, forbid, permit } from "../src/policy.ts";
import type { Provider } from "../src/provider.ts";
import type { Store } from "../src/store.ts";

declare const provider: Provider;
declare const store: Store;
const providers = { openrouter: provider, customer: provider };

test("a rule that names an unknown gateway does not compile", () => {
  createGateway({
    store,
    providers,
    policy: definePolicy({
      rules: [
        permit("default", { gateway: "openrouter", upTo: "D1_INTERNAL" }),
        permit("own", { connection: "customer" }, { reason: "billed and held by the customer" }),
        forbid("no-preview-models", { model: "*/*/*-preview" }),
      ],
    }),
  });
  createGateway({
    store,
    providers,
    // @ts-expect-error the gateway does not exist
    policy: definePolicy({ rules: [permit("default", { gateway: "openruter" })] }),
  });
});

test("a rule that falls back to an unknown gateway does not compile", () => {
  const some: string = "gpt-6";
  createGateway({
    store,
    providers,
    policy: definePolicy({
      rules: [
        permit(
          "default",
          {},
          { fallbacks: ["customer/openai/gpt-6", `openrouter/openai/${some}`] },
        ),
        permit("own", { gateway: "customer" }, { fallbacks: ["openrouter/openai/gpt-6"] }),
        permit("capped", { upTo: "D1_INTERNAL" }, { maxOutputTokens: 100, fallbacks: [] }),
      ],
    }),
  });
  createGateway({
    store,
    providers,
    // @ts-expect-error the gateway does not exist
    policy: definePolicy({
      rules: [
        permit("default", { gateway: "customer" }, { fallbacks: ["openruter/openai/gpt-6"] }),
      ],
    }),
  });
  const policy = definePolicy({
    rules: [permit("a", { gateway: "customer" }, { fallbacks: ["elsewhere/openai/gpt-6"] })],
  });
  // @ts-expect-error the gateway does not exist
  createGateway({ store, providers, policy });
  // @ts-expect-error it names no gateway
  permit("a", {}, { fallbacks: [some] });
});

test("a policy can live in a file of its own", () => {
  const policy = definePolicy({
    rules: [
      permit("a", { gateway: ["openrouter", "customer"] }),
      forbid("b", { upTo: "D0_PUBLIC" }),
    ],
  });
  expectTypeOf(policy.gateways).toEqualTypeOf<readonly ("openrouter" | "customer")[]>();
  createGateway({ store, providers, policy });
  const byFunction = definePolicy({
    version: "1",
    decide: () => ({ effect: "permit", rules: [] }),
  });
  createGateway({ store, providers, policy: combine(policy, byFunction) });
  const elsewhere = definePolicy({ rules: [permit("a", { gateway: "elsewhere" })] });
  // @ts-expect-error the gateway does not exist
  createGateway({ store, providers, policy: elsewhere });
});

test("a policy that names no gateway fits every gateway", () => {
  createGateway({
    store,
    providers,
    policy: definePolicy({ rules: [permit("all"), permit("some", { upTo: "D1_INTERNAL" })] }),
  });
  const policy = definePolicy({ rules: [permit("some", { upTo: "D1_INTERNAL" })] });
  createGateway({ store, providers, policy });
});
