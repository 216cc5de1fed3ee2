import { describe, expect, it } from "vitest";
import { requireGateway } from "./gateway.ts";

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
