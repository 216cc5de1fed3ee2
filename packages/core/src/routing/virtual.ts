import type { Provider, VirtualModel } from "../contracts/provider.ts";
import type { TargetStrategy } from "../domain/policy-decision.ts";
import type { Problem } from "../errors/gateway-error.ts";
import { problemAt, type Schema, tryRead } from "../input/read.ts";
import { fullModelId, text, wholeNumber } from "../input/values.ts";
import * as z from "../input/z.ts";

/** A model that a virtual model leads to. */
export interface VirtualTarget {
  /** Its full id. */
  readonly model: string;
  /** Its share of the calls, from 1 to 1,000. Counts with `weight` and `session`. Default 1. */
  readonly weight?: number;
}

/** How a virtual model chooses its target. */
export interface VirtualModelConfiguration {
  /** Up to 16 targets. If one is denied, can't be afforded or fails, the next in the order of choice follows. */
  readonly targets: readonly (string | VirtualTarget)[];
  /**
   * `order` prefers the first target. `weight` draws one for each call. `latency` prefers the target whose first output has
   * come soonest lately. `session` keeps a Session on one target, so the provider's prompt cache helps. Default `order`.
   */
  readonly by?: TargetStrategy;
}

/** The models of a virtual gateway by name: a list of targets in order, or a configuration. */
export type VirtualModels = Readonly<
  Record<string, readonly (string | VirtualTarget)[] | VirtualModelConfiguration>
>;

const maxTargets = 16;

const targets = z
  .array(
    z.union(
      [
        fullModelId,
        z.strictObject({ model: fullModelId, weight: z.exactOptional(wholeNumber(1, 1_000)) }),
      ],
      { error: "must be a model id, or { model, weight } with a weight from 1 to 1000" },
    ),
  )
  .check(z.minLength(1), z.maxLength(maxTargets));

const name = text(
  (value) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value),
  "must be 1 to 64 letters, digits, dots, hyphens and underscores",
);

/** The models of a virtual gateway. */
export const virtualModelsSchema: Schema<VirtualModels> = z.record(
  name,
  z.union(
    [
      targets,
      z.strictObject({
        targets,
        by: z.exactOptional(z.enum(["order", "weight", "latency", "session"])),
      }),
    ],
    {
      error: `must be a list of 1 to ${maxTargets} model ids, or { targets, by } with order, weight, latency or session`,
    },
  ),
);

/**
 * A virtual gateway: each of its models leads to one of several models of other gateways. Clients call
 * `<virtual gateway>/any/<name>`. Policies, budgets, prices and records know only the targets, each under its own id.
 * Problems of the configuration are reported by `createGateway`.
 */
export function virtual(models: VirtualModels): Provider {
  const { value, problems } = tryRead(virtualModelsSchema, models, { noun: "model" });
  return {
    contract: 1,
    connection: "platform",
    models: {},
    open: false,
    vendor: null,
    problems: problems.map(({ message }) => message),
    virtual: Object.fromEntries(
      Object.entries(value ?? {}).map(([model, one]) => [`any/${model}`, virtualModelOf(one)]),
    ),
    complete() {
      throw new TypeError("a virtual gateway has no provider: its targets have");
    },
    async close() {},
  };
}

function virtualModelOf(written: VirtualModels[string]): VirtualModel {
  const { targets, by = "order" } = "targets" in written ? written : { targets: written };
  return {
    by,
    targets: targets.map((target) =>
      typeof target === "string"
        ? { model: target, weight: 1 }
        : { model: target.model, weight: target.weight ?? 1 },
    ),
  };
}

/** The problems of virtual gateways: targets that no gateway has, that are listed twice, or that are virtual. */
export function virtualProblems(
  virtuals: ReadonlyMap<string, Provider>,
  exists: (model: string) => boolean,
): readonly Problem[] {
  return [...virtuals].flatMap(([gateway, { virtual = {}, problems }]) => {
    const path = `providers.${gateway}`;
    const models = Object.entries(virtual);
    if (models.length === 0 && problems.length === 0)
      return [problemAt(path, "has no models: name at least one with its targets")];
    return models.flatMap(([model, { targets }]) => {
      const ids = targets.map((target) => target.model);
      return ids.flatMap((id, at) => [
        ...(ids.indexOf(id) === at ? [] : [problemAt(path, `lists ${id} twice for ${model}`)]),
        ...(exists(id)
          ? []
          : [
              problemAt(
                path,
                `leads ${model} to ${id}, which no gateway has: name a model of a gateway that isn't virtual`,
              ),
            ]),
      ]);
    });
  });
}
