import { describe } from "vitest";
import { adminTokenTests } from "./store-contract/admin-tokens.ts";
import { attemptErrorTests } from "./store-contract/attempt-errors.ts";
import { budgetPropertyTests } from "./store-contract/budget-property.ts";
import { budgetRecordTests } from "./store-contract/budget-records.ts";
import { budgetTests } from "./store-contract/budgets.ts";
import { callTests } from "./store-contract/calls.ts";
import { changeTests } from "./store-contract/changes.ts";
import { checkpointTests } from "./store-contract/checkpoints.ts";
import { claimTests } from "./store-contract/claims.ts";
import { connectionTests } from "./store-contract/connections.ts";
import { createContractTest, type OpenedStore } from "./store-contract/contract-test.ts";
import { correctionTests } from "./store-contract/corrections.ts";
import { foundSessionTests } from "./store-contract/finding-sessions.ts";
import { keyChangeTests } from "./store-contract/key-changes.ts";
import { keyTests } from "./store-contract/keys.ts";
import { keyWithoutSecretTests } from "./store-contract/keys-without-secret.ts";
import { leaseTests } from "./store-contract/leases.ts";
import { namedSessionTests } from "./store-contract/named-sessions.ts";
import { pagingTests } from "./store-contract/paging.ts";
import { queryTests } from "./store-contract/queries.ts";
import { rateLimitTests } from "./store-contract/rate-limits.ts";
import { reconcilingTests } from "./store-contract/reconciling.ts";
import { responseChainTests } from "./store-contract/response-chains.ts";
import { responseOwnerTests } from "./store-contract/response-owners.ts";
import { responsePropertyTests } from "./store-contract/response-property.ts";
import { responseTests } from "./store-contract/responses.ts";
import { retentionTests } from "./store-contract/retention.ts";
import { sessionPropertyTests } from "./store-contract/session-property.ts";
import { sessionTests } from "./store-contract/sessions.ts";
import { type OpenedSharedStore, sharedStoreTests } from "./store-contract/shared-stores.ts";
import { stepContentTests } from "./store-contract/step-contents.ts";
import { stepTests } from "./store-contract/steps.ts";
import { summaryTests } from "./store-contract/summaries.ts";
import { summaryPropertyTests } from "./store-contract/summary-property.ts";
import { tenancyTests } from "./store-contract/tenancy.ts";
import { transcriptTests } from "./store-contract/transcripts.ts";
import { usageHourTests } from "./store-contract/usage-hours.ts";
import { writeSkewTests } from "./store-contract/write-skew.ts";

export type { OpenedStore } from "./store-contract/contract-test.ts";
export type { OpenedSharedStore } from "./store-contract/shared-stores.ts";

/**
 * Declares the conformance suite for stores (peer: vitest). `open` returns a new, empty store each time. The suite
 * migrates and closes it. You can't skip a test: a store must pass all of them.
 */
export function describeStoreContract(
  name: string,
  { open }: { readonly open: () => Promise<OpenedStore> },
): void {
  const test = createContractTest(open);
  describe(`${name}: the store contract`, () => {
    describe("Steps", () => stepTests(test));
    describe("Checkpoints", () => checkpointTests(test));
    describe("Calls without a Session", () => callTests(test));
    describe("Sessions by omitted ids", () => sessionTests(test));
    describe("Sessions and Turns by named ids", () => namedSessionTests(test));
    describe("Finding Sessions", () => foundSessionTests(test));
    describe("Sessions against the reference", () => sessionPropertyTests(test));
    describe("Transcripts", () => transcriptTests(test));
    describe("Contents of Steps", () => stepContentTests(test));
    describe("Stored responses", () => responseTests(test));
    describe("Owners of stored responses", () => responseOwnerTests(test));
    describe("Chains of stored responses", () => responseChainTests(test));
    describe("Chains against the reference", () => responsePropertyTests(test));
    describe("Holds", () => budgetTests(test));
    describe("Holds under random interleavings", () => budgetPropertyTests(test));
    describe("Reconciling", () => reconcilingTests(test));
    describe("Rate limits", () => rateLimitTests(test));
    describe("Claims on idempotency keys", () => claimTests(test));
    describe("Budgets", () => budgetRecordTests(test));
    describe("Provider errors", () => attemptErrorTests(test));
    describe("Corrections", () => correctionTests(test));
    describe("Keys", () => keyTests(test));
    describe("Tokens for the admin API", () => adminTokenTests(test));
    describe("Connections", () => connectionTests(test));
    describe("Changes to keys", () => keyChangeTests(test));
    describe("Keys without a secret", () => keyWithoutSecretTests(test));
    describe("Retention", () => retentionTests(test));
    describe("Leases", () => leaseTests(test));
    describe("Queries", () => queryTests(test));
    describe("Summaries", () => summaryTests(test));
    describe("Summaries of random histories", () => summaryPropertyTests(test));
    describe("Hourly sums", () => usageHourTests(test));
    describe("Changes", () => changeTests(test));
    describe("Concurrent decisions", () =>
      writeSkewTests((title, run) =>
        test(title, ({ store, intents }) => run({ stores: [store, store, store], intents })),
      ));
    describe("Pages", () => pagingTests(test));
    describe("Organizations", () => tenancyTests(test));
  });
}

/**
 * Declares the conformance suite for stores whose data is durable or shared by several processes (peer: vitest). `open`
 * returns a new, empty store, and `another` returns more stores on its data. The suite migrates the first and closes
 * all. Run `describeStoreContract` as well.
 */
export function describeSharedStoreContract(
  name: string,
  { open }: { readonly open: () => Promise<OpenedSharedStore> },
): void {
  describe(`${name}: the contract of shared stores`, () => sharedStoreTests(open));
}
