import type { GatewayOptions } from "./options.ts";

const known: Readonly<Record<keyof GatewayOptions, true>> = {
  store: true,
  providers: true,
  policy: true,
  budgets: true,
  dataClasses: true,
  prices: true,
  secrets: true,
  limits: true,
  deadlines: true,
  retries: true,
  retention: true,
  onDisconnect: true,
  toolOutputs: true,
  headerPrefix: true,
  authenticate: true,
  observers: true,
  maintenance: true,
  clock: true,
  ids: true,
};

/** An option that is mistyped would leave a gateway without its policy, or without its budgets. */
export function nameProblems(options: object): readonly string[] {
  return Object.keys(options)
    .filter((name) => !Object.hasOwn(known, name))
    .map((name) => `There is no option ${name}.`);
}

/** What has to be a list before anything in it can be looked at. */
export function listProblems(options: GatewayOptions): readonly string[] {
  return (["budgets", "dataClasses", "observers"] as const)
    .filter((name) => options[name] !== undefined && !Array.isArray(options[name]))
    .map((name) => `${name} must be a list.`);
}
