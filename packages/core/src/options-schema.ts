import { defaultRetryRules } from "./attempts/retry.ts";
import { budgetSchema, rateLimitSchema } from "./budgets/schema.ts";
import type { Authenticate } from "./contracts/authenticate.ts";
import { type EvidenceSigner, isSignerName, signerNameRule } from "./contracts/evidence-signer.ts";
import type { Observer, TraceParent } from "./contracts/observer.ts";
import type { Store } from "./contracts/store.ts";
import { leadingSystems } from "./domain/api-key.ts";
import { defaultDeadlines, defaultLimits } from "./domain/limits.ts";
import { connectionOwnerships } from "./domain/policy-decision.ts";
import { defaultRetention } from "./domain/retention.ts";
import type { Schema } from "./input/read.ts";
import { dataClassName, duration, modelAliases, part, text, wholeNumber } from "./input/values.ts";
import * as z from "./input/z.ts";
import { parseDuration } from "./kernel/duration.ts";
import type { GatewayOptions } from "./options.ts";
import type { UpstreamConfiguration } from "./pipeline/upstreams.ts";
import type { RulePolicy } from "./policy/define-policy.ts";
import { rulePolicySchema } from "./policy/schema.ts";
import type { PriceTable } from "./routing/configured-prices.ts";
import { priceTableSchema } from "./routing/model-schema.ts";

/** An object that a factory made, with these methods, lists of strings and other objects. It is passed on unchanged. */
const instance = (
  rule: string,
  contract: 1 | null,
  methods: readonly string[] = [],
  lists: readonly string[] = [],
  objects: readonly string[] = [],
) =>
  z
    .custom<object>(
      (value) =>
        isObject(value) && (contract === null || Reflect.get(value, "contract") === contract),
      { error: rule },
    )
    .check(
      ...methods.map((name) => member(name, isFunction, "a function")),
      ...lists.map((name) => member(name, isListOfStrings, "a list of strings")),
      ...objects.map((name) => member(name, isObject, "an object")),
    );

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

function isString(value: unknown): boolean {
  return typeof value === "string";
}

function isOneOf(...values: readonly unknown[]) {
  return (value: unknown): boolean => values.includes(value);
}

function isListOfStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every(isString);
}

function member(name: string, isValid: (value: unknown) => boolean, kind: string) {
  return z.refine<object>((made) => isValid(Reflect.get(made, name)), {
    path: [name],
    error: `must be ${kind}`,
  });
}

function optional(isValid: (value: unknown) => boolean) {
  return (value: unknown): boolean => value === undefined || isValid(value);
}

const callable = <Function>() => z.custom<Function>(isFunction, { error: "must be a function" });

const wait = duration.check(
  z.refine((value) => parseDuration(value) !== 0, { error: "must be longer than 0" }),
);

const upstream: Schema<UpstreamConfiguration> = z
  .strictObject({
    concurrency: z.exactOptional(wholeNumber(1)),
    queue: z.exactOptional(wholeNumber(0, 100_000)),
    queueWait: z.exactOptional(wait),
    breaker: z.exactOptional(
      z.strictObject({
        failures: z.exactOptional(wholeNumber(1)),
        ratio: z.exactOptional(part),
        window: z.exactOptional(wait),
        pause: z.exactOptional(wait),
      }),
    ),
  })
  .check(
    z.refine(
      ({ concurrency, queue, queueWait }) =>
        concurrency !== undefined || (queue === undefined && queueWait === undefined),
      { error: "must have `concurrency` with `queue` or `queueWait`" },
    ),
  );

const { allowDuplicates: _flag, ...countedRules } = defaultRetryRules;

const evidenceSigner = instance("must be a signer of contract 1, such as ed25519Signer(…)", 1, [
  "sign",
]).check(
  z.refine((signer: Partial<EvidenceSigner>) => isSignerName(signer.name), {
    path: ["name"],
    error: signerNameRule,
  }),
  member(
    "publicKey",
    (key) => key instanceof Uint8Array && key.length === 32,
    "an Ed25519 public key of 32 bytes",
  ),
);

const provider = instance(
  "must be a provider of contract 1",
  1,
  ["complete", "close"],
  ["problems"],
  ["models"],
).check(
  member("connection", isOneOf(...connectionOwnerships), connectionOwnerships.join(" or ")),
  ...["embed", "listModels", "countTokens", "stateNeeds"].map((name) =>
    member(name, optional(isFunction), "a function"),
  ),
);

const storeMethods = [
  "migrate",
  "close",
  "status",
  "openStep",
  "openAttempt",
  "settleStep",
  "correct",
  "recordRefusal",
  "renewLease",
  "lapsedSteps",
] as const satisfies readonly (keyof Store)[];

const repositories = [
  "keys",
  "connections",
  "sessions",
  "steps",
  "decisions",
  "budgets",
  "rateLimits",
  "adminTokens",
  "evidence",
  "checkpoints",
  "responses",
  "usage",
] as const satisfies readonly (keyof Store)[];

/** The options of a gateway that are plain data, except its policy and its prices. */
const settings = {
  budgets: z.exactOptional(z.array(budgetSchema)),
  rateLimits: z.exactOptional(z.array(rateLimitSchema)),
  dataClasses: z.exactOptional(z.array(dataClassName).check(z.minLength(1))),
  aliases: z.exactOptional(modelAliases),
  limits: z.exactOptional(z.strictObject(eachOptional(defaultLimits, wholeNumber(1)))),
  deadlines: z.exactOptional(z.strictObject(eachOptional(defaultDeadlines, duration))),
  retries: z.exactOptional(
    z.strictObject({
      ...eachOptional(countedRules, wholeNumber(0)),
      allowDuplicates: z.exactOptional(z.boolean()),
    }),
  ),
  upstreams: z.exactOptional(z.record(z.string(), upstream)),
  retention: z.exactOptional(z.strictObject(eachOptional(defaultRetention, duration))),
  onDisconnect: z.exactOptional(z.enum(["abort", "drain"])),
  toolOutputs: z.exactOptional(z.enum(["text", "parts"])),
  sessions: z.exactOptional(
    z.strictObject({ leadingSystem: z.exactOptional(z.enum(leadingSystems)) }),
  ),
  headerPrefix: z.exactOptional(
    text(
      (prefix) => /^[A-Za-z0-9-]{1,64}$/.test(prefix),
      "must be 1 to 64 letters, digits and hyphens",
    ),
  ),
  maintenance: z.exactOptional(z.boolean()),
};

/** Strict, because a gateway that ignored a mistyped option would run without its policy or its budgets. */
export const gatewayOptionsSchema = z.strictObject({
  ...settings,
  store: instance(
    "must be a store of contract 1, such as memoryStore()",
    1,
    storeMethods,
    [],
    repositories,
  ),
  providers: z.record(z.string(), provider).check(
    z.refine((providers) => Object.keys(providers).length > 0, {
      error: "must name at least one gateway",
    }),
  ),
  policy: z.exactOptional(
    instance(
      "must be a policy of contract 1: use definePolicy",
      1,
      ["decide"],
      ["gateways", "dataClasses", "fallbacks"],
    ).check(
      member("version", isString, "a string"),
      member("models", optional(isListOfStrings), "a list of strings"),
      // A policy with a mistyped value would never raise a class.
      member("sessions", isOneOf("ignore", "read", "raise"), "ignore, read or raise"),
    ),
  ),
  prices: z.exactOptional(instance("must be a price book or a table of prices", null)),
  secrets: z.exactOptional(instance("must be { current, keys } or a SecretBox", null)),
  evidence: z.exactOptional(
    z.strictObject({ signer: evidenceSigner, alarmAfter: z.exactOptional(wait) }),
  ),
  authenticate: z.exactOptional(callable<Authenticate>()),
  observers: z.exactOptional(z.array(callable<Observer>())),
  traceparent: z.exactOptional(callable<TraceParent>()),
  clock: z.exactOptional(instance("must be a clock", null, ["now", "monotonic", "after"])),
  ids: z.exactOptional(instance("must be a source of ids", null, ["uuid", "bytes"])),
  load: z.exactOptional(
    instance("must be a source of the process's load", null, ["loopDelay", "heapShare"]),
  ),
});

/** The options of a gateway that are data: all except objects made by factories, and functions. */
export interface GatewaySettings
  extends Pick<
    GatewayOptions,
    | "budgets"
    | "rateLimits"
    | "dataClasses"
    | "aliases"
    | "limits"
    | "deadlines"
    | "retries"
    | "upstreams"
    | "retention"
    | "onDisconnect"
    | "toolOutputs"
    | "sessions"
    | "headerPrefix"
    | "maintenance"
  > {
  /** A policy as rules, which `definePolicy` takes. */
  readonly policy?: RulePolicy<string>;
  /** Prices under full model ids. */
  readonly prices?: PriceTable;
}

/** The members of `gatewaySettingsSchema`, for schemas with further members. */
export const gatewaySettings = {
  ...settings,
  policy: z.exactOptional(rulePolicySchema),
  prices: z.exactOptional(priceTableSchema),
};

/** The options of a gateway that a JSON or YAML file can contain, without its store and its providers. */
export const gatewaySettingsSchema: Schema<GatewaySettings> = z.strictObject(gatewaySettings);

function eachOptional<Value>(defaults: object, value: z.ZodMiniType<Value>) {
  return Object.fromEntries(Object.keys(defaults).map((name) => [name, z.exactOptional(value)]));
}
