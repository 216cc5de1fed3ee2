import { describe, expect, it } from "vitest";
import { createGateway, requireGateway } from "./gateway.ts";

const call = "tollgate(gateway)";

describe("requireGateway", () => {
  it("accepts anything that has a gateway's methods", () => {
    expect(() => requireGateway({ answer: () => {}, fetch: () => {} }, call)).not.toThrow();
  });

  it.each([
    [undefined, "nothing"],
    [null, "null"],
    ["gateway", "a string"],
    [{ providers: {} }, "another object"],
    [Promise.resolve({}), "a promise: await it first"],
    [() => {}, "a function"],
  ])("rejects %s", (value, given) => {
    expect(() => requireGateway(value, call)).toThrow(
      `${call} needs a gateway from createGateway, but got ${given}.`,
    );
  });
});

describe("createGateway on an older Node", () => {
  it("names the releases that it requires", () => {
    const { withResolvers } = Promise;
    Reflect.deleteProperty(Promise, "withResolvers");
    try {
      expect(() => Reflect.apply(createGateway, null, [{}])).toThrow(
        "Tollgate requires Node 22.22.3 or a later 22, or Node 24.15 or later.",
      );
    } finally {
      Object.assign(Promise, { withResolvers });
    }
  });
});
