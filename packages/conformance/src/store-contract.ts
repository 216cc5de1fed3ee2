import { describe } from "vitest";
import { attemptErrorTests } from "./store-contract/attempt-errors.ts";
import { budgetPropertyTests } from "./store-contract/budget-property.ts";
import { budgetRecordTests } from "./store-contract/budget-records.ts";
import { budgetTests } from "./store-contract/budgets.ts";
import { changeTests } from "./store-contract/changes.ts";
import { connectionTests } from "./store-contract/connections.ts";
import { createContractTest, type OpenedStore } from "./store-contract/contract-test.ts";
import { correctionTests } from "./store-contract/corrections.ts";
import { foundSessionTests } from "./store-contract/found-sessions.ts";
import { keyChangeTests } from "./store-contract/key-changes.ts";
import { keyTests } from "./store-contract/keys.ts";
import { keyWithoutSecretTests } from "./store-contract/keys-without-secret.ts";
import { leaseTests } from "./store-contract/leases.ts";
import { namedSessionTests } from "./store-contract/named-sessions.ts";
import { pagingTests } from "./store-contract/paging.ts";
import { queryTests } from "./store-contract/queries.ts";
import { rateLimitTests } from "./store-contract/rate-limits.ts";
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
import { writeSkewTests } from "./store-contract/write-skew.ts";

export type { OpenedStore } from "./store-contract/contract-test.ts";
export type { OpenedSharedStore } from "./store-contract/shared-stores.ts";

/**
 * Declares the conformance suite that every store runs (peer: vitest). `open` gives a store that nothing was written
 * to, each time it is called; the suite migrates and closes it. There is nothing to skip and no flag: a store passes
 * all of it or is not one.
 */
export function describeStoreContract(
  name: string,
  { open }: { readonly open: () => Promise<OpenedStore> },
): void {
  const test = createContractTest(open);
  describe(`${name}: the store contract`, () => {
    describe("Steps", () => stepTests(test));
    describe("Sessions by omitted ids", () => sessionTests(test));
    describe("Sessions and Turns by named ids", () => namedSessionTests(test));
    describe("Sessions found before", () => foundSessionTests(test));
    describe("Sessions against the reference", () => sessionPropertyTests(test));
    describe("Transcripts", () => transcriptTests(test));
    describe("Contents of Steps", () => stepContentTests(test));
    describe("Stored responses", () => responseTests(test));
    describe("Owners of stored responses", () => responseOwnerTests(test));
    describe("Chains of stored responses", () => responseChainTests(test));
    describe("Chains against the reference", () => responsePropertyTests(test));
    describe("Holds", () => budgetTests(test));
    describe("Holds under random interleavings", () => budgetPropertyTests(test));
    describe("Rate limits", () => rateLimitTests(test));
    describe("Budgets", () => budgetRecordTests(test));
    describe("What providers said", () => attemptErrorTests(test));
    describe("Corrections", () => correctionTests(test));
    describe("Keys", () => keyTests(test));
    describe("Connections", () => connectionTests(test));
    describe("Changes of keys", () => keyChangeTests(test));
    describe("Keys without a secret", () => keyWithoutSecretTests(test));
    describe("Retention", () => retentionTests(test));
    describe("Leases", () => leaseTests(test));
    describe("Queries", () => queryTests(test));
    describe("Summaries", () => summaryTests(test));
    describe("Summaries of random histories", () => summaryPropertyTests(test));
    describe("Changes", () => changeTests(test));
    describe("Decisions at once", () =>
      writeSkewTests((title, run) =>
        test(title, ({ store, intents }) => run({ stores: [store, store, store], intents })),
      ));
    describe("Pages", () => pagingTests(test));
    describe("Organizations", () => tenancyTests(test));
  });
}

/**
 * Declares what a store must also keep when its data outlives it or several processes share it (peer: vitest). `open`
 * gives a store that nothing was written to, and `another` further stores on its data; the suite migrates the first
 * and closes all. A store that runs this runs `describeStoreContract` as well.
 */
export function describeSharedStoreContract(
  name: string,
  { open }: { readonly open: () => Promise<OpenedSharedStore> },
): void {
  describe(`${name}: the contract of shared stores`, () => sharedStoreTests(open));
}
