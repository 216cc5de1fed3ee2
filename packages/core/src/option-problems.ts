import { defaultRetryRules } from "./attempts/retry.ts";
import { secretKeyProblems } from "./connections/key-ring.ts";
import type { Policy } from "./contracts/policy.ts";
import type { Provider } from "./contracts/provider.ts";
import type { Budget } from "./domain/budget.ts";
import { defaultLimits } from "./domain/limits.ts";
import { listed, lowerAscii } from "./domain/pattern.ts";
import type { GatewayOptions } from "./options.ts";
import { billingProblems } from "./routing/read-price.ts";
import { createRouter } from "./routing/route.ts";
import { namingProblems } from "./routing/upstream-names.ts";

/** What is wrong with options, one sentence each. */
export function providerProblems(providers: ReadonlyMap<string, Provider>): readonly string[] {
  if (providers.size === 0) return ["providers must name at least one gateway."];
  return [...providers].flatMap(([gateway, provider]) => [
    ...(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(gateway)
      ? []
      : [`Gateway ${gateway}: a name is 1 to 64 letters, digits, dots, hyphens and underscores.`]),
    ...sameInAnyCase([...providers.keys()], gateway),
    ...(provider?.contract === 1
      ? [
          ...provider.problems,
          ...namingProblems(provider),
          ...billingProblems(provider.billing),
        ].map((problem) => `Gateway ${gateway}: ${problem}`)
      : [`Gateway ${gateway}: it is not a provider of contract 1.`]),
  ]);
}

export function dataClassProblems(
  dataClasses: readonly string[],
  policy: Policy | undefined,
): readonly string[] {
  if (dataClasses.length === 0) return ["dataClasses must name at least one class."];
  return [
    ...dataClasses
      .filter((name) => !/^[A-Za-z0-9_.-]{1,64}$/.test(name))
      .map(
        (name) =>
          `Data class ${name}: a name is 1 to 64 letters, digits, dots, hyphens and underscores.`,
      ),
    ...duplicates(dataClasses).map((name) => `Data class ${name} is named twice.`),
    ...(policy?.dataClasses ?? [])
      .filter((name) => !dataClasses.includes(name))
      .map((name) => `The policy names the data class ${name}, which does not exist.`),
  ];
}

export function policyProblems(
  policy: Policy | undefined,
  providers: ReadonlyMap<string, Provider>,
): readonly string[] {
  if (policy === undefined) return [];
  if (policy.contract !== 1) return ["policy must be a policy of contract 1: use definePolicy."];
  const gateways = policy.gateways
    .filter((gateway) => !providers.has(gateway))
    .map((gateway) => `The policy names the gateway ${gateway}, which is not among the providers.`);
  const router = createRouter(providers);
  const fallbacks = policy.fallbacks
    .filter((model) => router.find(model) === null)
    .map((model) => `The policy falls back to ${model}, which no gateway has.`);
  return [...gateways, ...fallbacks];
}

export function limitProblems(written: Partial<Record<string, number>>): readonly string[] {
  return Object.entries(written)
    .filter(
      ([name, value]) =>
        !Object.hasOwn(defaultLimits, name) || !Number.isSafeInteger(value) || (value ?? 0) < 1,
    )
    .map(([name]) => `limits.${name} must be a known limit and a whole number from 1.`);
}

/** Retry rules are numbers from 0, and a plain yes or no for duplicates. */
export function retryProblems(
  written: Partial<Record<string, number | boolean>>,
): readonly string[] {
  return Object.entries(written)
    .filter(([name, value]) => {
      if (name === "allowDuplicates") return typeof value !== "boolean";
      return (
        !Object.hasOwn(defaultRetryRules, name) || !Number.isSafeInteger(value) || Number(value) < 0
      );
    })
    .map(
      ([name]) =>
        `retries.${name} must be a known rule: a whole number from 0, or for allowDuplicates a boolean.`,
    );
}

/** Customers' credentials must be sealed from the first on; keys that nobody needs must be keys all the same. */
export function secretProblems(
  secrets: GatewayOptions["secrets"],
  providers: ReadonlyMap<string, Provider>,
): readonly string[] {
  if (secrets === undefined)
    return [...providers]
      .filter(([, provider]) => provider?.connection === "customer")
      .map(
        ([gateway]) => `Gateway ${gateway} is customer-owned, which takes secrets to seal with.`,
      );
  if (typeof secrets !== "object" || secrets === null)
    return ["secrets must be { current, keys } or a SecretBox."];
  if (!("wrap" in secrets)) return secretKeyProblems(secrets);
  const { contract, current, wrap, unwrap } = secrets;
  const isBox = contract === 1 && [wrap, unwrap].every((member) => typeof member === "function");
  return isBox && typeof current === "string" && current !== ""
    ? []
    : ["secrets is not a SecretBox of contract 1 with a current key."];
}

/** A budget that names a gateway which does not exist would never count anything. */
export function budgetProblems(
  budgets: readonly Budget[],
  providers: ReadonlyMap<string, Provider>,
): readonly string[] {
  const twice = duplicates(budgets.map(({ id }) => id)).map(
    (id) => `Budget ${id} is defined twice.`,
  );
  const unknown = budgets.flatMap(({ id, scope }) =>
    listed(scope.gateway ?? [])
      .filter((gateway) => !providers.has(gateway))
      .map(
        (gateway) => `Budget ${id} names the gateway ${gateway}, which is not among the providers.`,
      ),
  );
  return [...twice, ...unknown];
}

/** Patterns ignore case, so a rule for one of the two would be a rule for both. */
function sameInAnyCase(gateways: readonly string[], gateway: string): readonly string[] {
  const earlier = gateways.slice(0, gateways.indexOf(gateway));
  return earlier
    .filter((other) => lowerAscii(other) === lowerAscii(gateway))
    .map((other) => `Gateways ${other} and ${gateway} differ by case only.`);
}

export function duplicates(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}
