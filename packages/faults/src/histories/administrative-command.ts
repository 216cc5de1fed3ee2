import fc from "fast-check";

/** An act of an administrator in a history. Numbers that select something wrap around. */
export type AdministrativeCommand =
  | { readonly type: "createKey"; readonly user: number; readonly organization: number }
  | { readonly type: "rotateKey" | "revokeKey" | "revokeUser"; readonly key: number }
  | {
      readonly type: "setBudget";
      readonly budget: number;
      readonly unit: "requests" | "tokens";
      readonly limit: number;
      readonly each: boolean;
      readonly hard: boolean;
    }
  | { readonly type: "removeBudget"; readonly budget: number }
  /** Any budget, including declared ones. */
  | {
      readonly type: "raiseBudget";
      readonly budget: number;
      readonly amount: number;
      readonly minutes: number;
    }
  | { readonly type: "cancelRaise"; readonly budget: number; readonly raise: number }
  /** The n-th Step from the newest; null leaves a figure unchanged. */
  | {
      readonly type: "correct";
      readonly step: number;
      readonly attempt: number | null;
      readonly tokens: number | null;
      readonly costNanoUsd: number | null;
    }
  | { readonly type: "reprice" }
  | { readonly type: "setConnection"; readonly organization: number; readonly credential: number }
  | { readonly type: "removeConnection"; readonly organization: number }
  /** Has an effect after a restart, which brings another key-encryption key. */
  | { readonly type: "reseal" };

const key = fc.nat({ max: 3 });
const organization = fc.nat({ max: 1 });
const ownBudget = fc.nat({ max: 1 });
const anyBudget = fc.nat({ max: 3 });
const one = <const Type extends string>(...types: readonly Type[]) => fc.constantFrom(...types);

/** Any of them, with frequencies by weight. */
export const administrativeCommand: fc.Arbitrary<AdministrativeCommand> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      type: one("setBudget"),
      budget: ownBudget,
      unit: one("requests", "tokens"),
      limit: fc.constantFrom(0, 2, 5, 5_000, 100_000),
      each: fc.boolean(),
      hard: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: one("removeBudget"), budget: ownBudget }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: one("raiseBudget"),
      budget: anyBudget,
      amount: fc.constantFrom(0, 1, 1, 3, 4_000),
      minutes: fc.constantFrom(0, 1, 90, 90),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: one("cancelRaise"),
      budget: anyBudget,
      raise: fc.nat({ max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: one("correct"),
      step: fc.nat({ max: 3 }),
      attempt: fc.constantFrom(null, null, 1, 2),
      tokens: fc.constantFrom(null, 0, 7, 2_900),
      costNanoUsd: fc.constantFrom(null, 0, 12_345, 999_000_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: one("reprice", "reseal") }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: one("setConnection"),
      organization,
      credential: fc.nat({ max: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: one("removeConnection"), organization }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: one("createKey"), user: fc.nat({ max: 1 }), organization }),
  },
  { weight: 1, arbitrary: fc.record({ type: one("rotateKey", "revokeKey", "revokeUser"), key }) },
);
