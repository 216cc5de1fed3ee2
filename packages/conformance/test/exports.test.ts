import { describe, expect, it } from "vitest";

const suites = {
  "store-contract": "describeStoreContract",
  "provider-contract": "describeProviderContract",
  "binding-contract": "describeBindingContract",
};

describe("the conformance suites for stores, providers and bindings", () => {
  it("are the same through the exports of @tollgate/testing", async () => {
    for (const [door, name] of Object.entries(suites)) {
      const own: Readonly<Record<string, unknown>> = await import(`@tollgate/conformance/${door}`);
      const passedOn: Readonly<Record<string, unknown>> = await import(`@tollgate/testing/${door}`);
      expect(own[name], door).toBeTypeOf("function");
      expect({ ...passedOn }, door).toEqual({ ...own });
    }
  });
});
