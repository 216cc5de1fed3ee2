import type { Clock } from "@tollgate/core/provider";
import {
  billingSchema,
  connectionOwnership,
  modelOptions,
  type Schema,
  stateOptions,
  text,
  tryRead,
  z,
} from "@tollgate/core/schemas";
import type {
  AiSdkEmbeddingModel,
  AiSdkModel,
  AiSdkOptions,
  AiSdkProvider,
  AiSdkSource,
  Connect,
} from "./options.ts";

/** The accepted forms of a source. */
export type Source = AiSdkSource | Connect;

const host = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::\d{1,5})?$/;

export function isModel(source: unknown): source is AiSdkModel {
  return (
    typeof source === "object" && source !== null && "doGenerate" in source && "doStream" in source
  );
}

export function isEmbeddingModel(source: unknown): source is AiSdkEmbeddingModel {
  return typeof source === "object" && source !== null && "doEmbed" in source;
}

/** Providers of the AI SDK are functions with members. A function without members is a `Connect` function. */
export function isProvider(source: unknown): source is AiSdkProvider {
  return (
    ((typeof source === "object" && source !== null) || typeof source === "function") &&
    "languageModel" in source &&
    typeof source.languageModel === "function"
  );
}

/** Whether the model implements a supported version. Older versions have different usage and files. */
export function isKnownVersion({
  specificationVersion,
}: AiSdkModel | AiSdkEmbeddingModel): boolean {
  return specificationVersion === "v3" || specificationVersion === "v4";
}

const callable = <Function>() =>
  z.custom<Function>((value) => typeof value === "function", { error: "must be a function" });

const keyRule = "must be a string that is not empty, or a function";

const optionsSchema: Schema<AiSdkOptions> = z
  .strictObject({
    ...modelOptions,
    ...stateOptions,
    connection: z.exactOptional(connectionOwnership),
    apiKey: z.exactOptional(
      z.union([callable<() => string | Promise<string>>(), text((key) => key !== "", keyRule)], {
        error: keyRule,
      }),
    ),
    hosts: z.exactOptional(
      z.array(text((name) => host.test(name), "is not a host name in lower case")),
    ),
    trace: z.exactOptional(z.enum(["none", "send"])),
    providerOptions: z.exactOptional(callable<NonNullable<AiSdkOptions["providerOptions"]>>()),
    embeddingOptions: z.exactOptional(callable<NonNullable<AiSdkOptions["embeddingOptions"]>>()),
    billing: z.exactOptional(billingSchema),
    clock: z.exactOptional(
      z.custom<Clock>((value) => typeof value === "object" && value !== null, {
        error: "must be a clock",
      }),
    ),
  })
  .check(
    z.refine<AiSdkOptions>(
      ({ connection, apiKey }) => connection !== "customer" || apiKey === undefined,
      {
        error:
          "must not be set on a customer-owned connection: Tollgate sends the organization's own credential",
        path: ["apiKey"],
        when: ({ value }) => typeof value === "object" && value !== null,
      },
    ),
  );

/** The checked options. Null if they or the source are invalid. */
export interface Configuration {
  readonly options: AiSdkOptions | null;
  /** One sentence each, without secrets. */
  readonly problems: readonly string[];
}

/** Reads the options of a source. A key that is `undefined` is refused: it is a variable that isn't set. */
export function readOptions(source: unknown, input: unknown): Configuration {
  const read = tryRead(optionsSchema, input, {
    noun: "option",
    passThrough: ["clock", "apiKey"],
  });
  const connects = typeof source === "function" && !isProvider(source);
  const isOneModel = isModel(source) || isEmbeddingModel(source);
  const usable = connects || isProvider(source) || isOneModel;
  const problems = [
    ...(usable ? [] : ["aiSdk takes a model or a provider of the AI SDK, or a function"]),
    ...(isOneModel && !isKnownVersion(source)
      ? ["the model must be of specification version v3 or v4"]
      : []),
    ...(connects || !usable || read.value === null ? [] : formProblems(read.value)),
    ...read.problems.map(({ message }) => message),
  ];
  return { options: problems.length === 0 ? read.value : null, problems };
}

/** Lists options that only the function form supports. */
function formProblems({ connection, apiKey, hosts, trace }: AiSdkOptions): readonly string[] {
  const features = [
    ...(connection === "customer" ? ["a customer-owned connection"] : []),
    ...(apiKey === undefined ? [] : ["apiKey"]),
    ...(hosts === undefined ? [] : ["hosts"]),
    ...(trace === "send" ? ["trace"] : []),
  ];
  return features.map((feature) => `${feature} needs the form aiSdk(({ fetch, credential }) => …)`);
}
