import { describe } from "vitest";
import { createContractTest, type OpenedStore } from "./store-contract/contract-test.ts";
import { namedSessionTests } from "./store-contract/named-sessions.ts";
import { sessionPropertyTests } from "./store-contract/session-property.ts";
import { sessionTests } from "./store-contract/sessions.ts";
import { stepTests } from "./store-contract/steps.ts";
import { transcriptTests } from "./store-contract/transcripts.ts";

export type { OpenedStore } from "./store-contract/contract-test.ts";

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
    describe("Sessions against the reference", () => sessionPropertyTests(test));
    describe("Transcripts", () => transcriptTests(test));
  });
}
