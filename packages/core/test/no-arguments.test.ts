import { memoryStore } from "@tollgate/store-memory";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../src/index.ts";
import { administrativeMethods, outcomeOf } from "./administrative-methods.ts";
import { openOwnGateways } from "./own-gateways.ts";

/** The methods that work without arguments. */
const bare = [
  "adminTokens.list",
  "budgets.list",
  "budgets.reconcile",
  "connections.reseal",
  "rateLimits.list",
];
const nothing: readonly (readonly unknown[])[] = [
  ...[[], [null], [undefined, null], [null, null, null]],
  ...[["acme"], [5], [true], [[]], ["", 5, ""]],
];

describe("the administration", () => {
  it("rejects a call without an argument or without an object, naming the arguments", async () => {
    const { gateway } = await openOwnGateways({ store: memoryStore() });
    const methods = administrativeMethods(gateway).filter(({ name }) => !bare.includes(name));
    expect(methods.length).toBeGreaterThan(30);
    for (const { name, call } of methods)
      for (const given of nothing) {
        const error = await outcomeOf(() => call(...given));
        expect(error, `${name}(${given})`).toBeInstanceOf(GatewayError);
        expect(error, `${name}(${given})`).toMatchObject({ code: "invalid_argument" });
      }
    for (const caller of [undefined, null, "ada", 5, []])
      expect(await outcomeOf(() => Reflect.apply(gateway.as, gateway, [caller]))).toMatchObject({
        code: "invalid_argument",
      });
  });

  it("refuses a second argument that is missing, and rejects rather than throws", async () => {
    const { gateway, key } = await openOwnGateways({ store: memoryStore() });
    const { organizationId } = key;
    const call = (method: unknown, ...given: readonly unknown[]): unknown =>
      typeof method === "function" ? Reflect.apply(method, null, given) : null;
    for (const noun of ["steps", "activity", "decisions"] as const)
      for (const options of [undefined, null, {}, { format: "xml" }, "csv"])
        expect(
          await outcomeOf(() => call(gateway[noun].export, { organizationId }, options)),
        ).toMatchObject({
          code: "invalid_argument",
          param: options === "csv" ? null : "format",
        });
    expect(await outcomeOf(() => call(gateway.steps.reprice, { organizationId }))).toMatchObject({
      param: "prices",
    });
    const creating = call(gateway.keys.create);
    expect(creating).toBeInstanceOf(Promise);
    await expect(creating).rejects.toMatchObject({ param: "organizationId" });
    await expect(call(gateway.budgets.get)).rejects.toMatchObject({ param: "id" });
  });

  it("rejects unknown filters of the list of budgets", async () => {
    const { gateway } = await openOwnGateways({ store: memoryStore() });
    for (const filter of [{ organisationId: "acme" }, "acme"])
      expect(
        await outcomeOf(() => Reflect.apply(gateway.budgets.list, null, [filter])),
      ).toMatchObject({ code: "invalid_argument" });
    expect(await gateway.budgets.list()).toMatchObject({ data: [] });
  });
});
