import { secretKeyProblems } from "./connections/key-ring.ts";
import type { Policy } from "./contracts/policy.ts";
import type { Provider } from "./contracts/provider.ts";
import type { Budget } from "./domain/budget.ts";
import { listed, lowerAscii } from "./domain/pattern.ts";
import type { RateLimit } from "./domain/rate-limit.ts";
import type { Problem } from "./errors/gateway-error.ts";
import { problemAt, tryRead } from "./input/read.ts";
import type { GatewayOptions } from "./options.ts";
import { billingSchema } from "./routing/model-schema.ts";
import { createRouter } from "./routing/route.ts";
import { namingProblems } from "./routing/upstream-names.ts";

/** What is wrong with each provider, under its gateway's name. */
export function providerProblems(providers: ReadonlyMap<string, Provider>): readonly Problem[] {
  return [...providers].flatMap(([gateway, provider]) =>
    [
      ...(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(gateway)
        ? []
        : ["a name is 1 to 64 letters, digits, dots, hyphens and underscores"]),
      ...sameInAnyCase([...providers.keys()], gateway),
      ...provider.problems,
      ...namingProblems(provider),
      ...billingProblems(provider),
    ].map((problem) => ({
      path: `providers.${gateway}`,
      message: `Gateway ${gateway}: ${problem}${problem.endsWith(".") ? "" : "."}`,
    })),
  );
}

/** A provider that found faults in its own options names these among them. */
function billingProblems({ billing, problems }: Provider): readonly string[] {
  if (problems.length > 0) return [];
  return tryRead(billingSchema, billing, { noun: "member", path: "billing" }).problems.map(
    ({ message }) => message,
  );
}

export function dataClassProblems(
  dataClasses: readonly string[],
  policy: Policy | undefined,
): readonly Problem[] {
  return [
    ...duplicates(dataClasses).map((name) => problemAt("dataClasses", `names ${name} twice`)),
    ...(policy?.dataClasses ?? [])
      .filter((name) => !dataClasses.includes(name))
      .map((name) => problemAt("policy", `names an unknown data class, ${name}`)),
  ];
}

export function policyProblems(
  policy: Policy | undefined,
  providers: ReadonlyMap<string, Provider>,
): readonly Problem[] {
  if (policy === undefined) return [];
  const router = createRouter(providers);
  return [
    ...policy.gateways
      .filter((gateway) => !providers.has(gateway))
      .map((gateway) => problemAt("policy", `names an unknown gateway, ${gateway}`)),
    ...policy.fallbacks
      .filter((model) => router.find(model) === null)
      .map((model) => problemAt("policy", `falls back to ${model}, which no gateway has`)),
  ];
}

/** Customers' credentials must be sealed from the first on; keys that nobody needs must be keys all the same. */
export function secretProblems(
  secrets: GatewayOptions["secrets"],
  providers: ReadonlyMap<string, Provider>,
): readonly Problem[] {
  if (secrets === undefined)
    return [...providers]
      .filter(([, provider]) => provider.connection === "customer")
      .map(([gateway]) =>
        problemAt("secrets", `is required: gateway ${gateway} is customer-owned`),
      );
  if (!("wrap" in secrets))
    return secretKeyProblems(secrets).map((message) => ({ path: "secrets", message }));
  const { contract, current, wrap, unwrap } = secrets;
  const isBox = contract === 1 && [wrap, unwrap].every((member) => typeof member === "function");
  return isBox && typeof current === "string" && current !== ""
    ? []
    : [problemAt("secrets", "must be a SecretBox of contract 1 with a current key")];
}

/** A budget or rate limit that names an unknown gateway would never count anything. Both share their ids. */
export function budgetProblems(
  budgets: readonly Budget[],
  rateLimits: readonly RateLimit[],
  providers: ReadonlyMap<string, Provider>,
): readonly Problem[] {
  const all = [
    ...budgets.map(({ id, scope }, at) => ({ id, scope, path: `budgets[${at}]` })),
    ...rateLimits.map(({ id, scope }, at) => ({ id, scope, path: `rateLimits[${at}]` })),
  ];
  const ids = all.map(({ id }) => id);
  return all.flatMap(({ id, scope, path }, at) => [
    ...(ids.indexOf(id) === at
      ? []
      : [problemAt(`${path}.id`, `is the id of an earlier budget or rate limit, ${id}`)]),
    ...listed(scope.gateway ?? [])
      .filter((gateway) => !providers.has(gateway))
      .map((gateway) => problemAt(`${path}.scope.gateway`, `names an unknown gateway, ${gateway}`)),
  ]);
}

/** Patterns ignore case, so a rule for one of the two would be a rule for both. */
function sameInAnyCase(gateways: readonly string[], gateway: string): readonly string[] {
  return gateways
    .slice(0, gateways.indexOf(gateway))
    .filter((other) => lowerAscii(other) === lowerAscii(gateway))
    .map((other) => `its name differs from ${other} by case only`);
}

function duplicates(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}
