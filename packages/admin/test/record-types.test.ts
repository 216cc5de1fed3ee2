import type {
  BudgetRaiseRecord,
  BudgetReconciliation,
  BudgetRecord,
  BudgetStatus,
  ChangeRecord,
  ConnectionRecord,
  CreatedAdminToken,
  CreatedKey,
  KeyRecord,
  KeyWithSecret,
  RateLimitRecord,
  RateLimitStatus,
  RepricedAttempt,
  ResealResult,
  RevokedKeys,
  SessionRecord,
} from "@tollgate/core";
import type { z } from "@tollgate/core/schemas";
import { expectTypeOf, it } from "vitest";
import type * as records from "../src/records.ts";

/** Members of a record, also those within its lists, without `readonly`. */
type Plain<T> = T extends (...args: never) => unknown
  ? T
  : T extends object
    ? { -readonly [Name in keyof T]: Plain<T[Name]> }
    : T;

type Records = typeof records;
type Shown<Name extends keyof Records> =
  Records[Name] extends z.ZodMiniType<infer Row, unknown> ? Plain<Row> : never;

// The client and the table compare the types of the other records in both directions.
it("has schemas with exactly the members of the records' types, which the compiler compares", () => {
  expectTypeOf<Shown<"keyRecord">>().toEqualTypeOf<Plain<KeyRecord>>();
  expectTypeOf<Shown<"keyWithSecret">>().toEqualTypeOf<Plain<KeyWithSecret>>();
  expectTypeOf<Shown<"createdKey">>().toEqualTypeOf<Plain<CreatedKey>>();
  expectTypeOf<Shown<"createdAdminToken">>().toEqualTypeOf<Plain<CreatedAdminToken>>();
  expectTypeOf<Shown<"connectionRecord">>().toEqualTypeOf<Plain<ConnectionRecord>>();
  expectTypeOf<Shown<"revokedKeys">>().toEqualTypeOf<Plain<RevokedKeys>>();
  expectTypeOf<Shown<"resealResult">>().toEqualTypeOf<Plain<ResealResult>>();
  expectTypeOf<Shown<"budgetRecord">>().toEqualTypeOf<Plain<BudgetRecord>>();
  expectTypeOf<Shown<"budgetRaise">>().toEqualTypeOf<Plain<BudgetRaiseRecord>>();
  expectTypeOf<Shown<"budgetStatus">>().toEqualTypeOf<Plain<BudgetStatus>>();
  expectTypeOf<Shown<"budgetReconciliation">>().toEqualTypeOf<Plain<BudgetReconciliation>>();
  expectTypeOf<Shown<"rateLimitRecord">>().toEqualTypeOf<Plain<RateLimitRecord>>();
  expectTypeOf<Shown<"rateLimitStatus">>().toEqualTypeOf<Plain<RateLimitStatus>>();
  expectTypeOf<Shown<"repricedAttempt">>().toEqualTypeOf<Plain<RepricedAttempt>>();
  expectTypeOf<Shown<"sessionRecord">>().toEqualTypeOf<Plain<SessionRecord>>();
  expectTypeOf<Shown<"changeRecord">>().toEqualTypeOf<Plain<ChangeRecord>>();
});
