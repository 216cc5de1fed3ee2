import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { createGateway, GatewayError } from "../src/index.ts";
import { administrativeMethods, outcomeOf } from "./administrative-methods.ts";
import { openOwnGateways } from "./own-gateways.ts";

const failure = new Error("disk I/O error");
const fail = (): Promise<never> => Promise.reject(failure);

/** A store whose methods all fail after `break()`. */
function breakable(store: Store): { readonly store: Store; break(): void } {
  const state = { isBroken: false };
  const wrap = <Part extends object>(part: Part): Part =>
    new Proxy(part, {
      get(_part, name): unknown {
        const member: unknown = Reflect.get(part, name);
        if (typeof member === "object" && member !== null) return wrap(member);
        if (typeof member !== "function" || name === "close") return member;
        return (...given: unknown[]) =>
          state.isBroken ? fail() : Reflect.apply(member, part, given);
      },
    });
  return {
    store: Object.freeze({ ...wrap(store) }),
    break() {
      state.isBroken = true;
    },
  };
}

const organization = { organizationId: "test-organization" };
const record = { ...organization, id: "some-id" };
const budget = { id: "some-id", limit: { requests: 1 }, period: "day", mode: "hard" };
const connection = { ...organization, gateway: "own" };

/** Arguments with which a method calls the store, for methods that need more than one record's id. */
const others: Readonly<Record<string, object>> = {
  "keys.create": { ...organization, userId: "ada", label: "laptop" },
  "budgets.create": budget,
  "budgets.update": budget,
  "budgets.get": { id: "some-id" },
  "budgets.remove": { id: "some-id" },
  "budgets.status": { id: "some-id" },
  "connections.set": { ...connection, apiKey: "sk-1" },
  "connections.reseal": {},
};

const argumentFor = (noun: string, name: string): object => {
  if (name === "list") return organization;
  return others[`${noun}.${name}`] ?? (noun === "connections" ? connection : record);
};

describe("administration over a failing store", () => {
  it("fails with a GatewayError that keeps the cause, whatever the call", async () => {
    const broken = breakable(memoryStore());
    const { gateway } = await openOwnGateways({ store: broken.store });
    broken.break();
    const outcomes = new Map<string, unknown>();
    for (const { noun, verb, name, call } of administrativeMethods(gateway))
      outcomes.set(name, await outcomeOf(() => call(argumentFor(noun, verb))));
    outcomes.set("recover", await outcomeOf(gateway.recover));
    outcomes.set("sweep", await outcomeOf(gateway.sweep));
    outcomes.set("checkStore", await outcomeOf(gateway.checkStore));
    for (const [name, error] of outcomes) expect(error, name).toBeInstanceOf(GatewayError);
    for (const name of [
      ...["keys.create", "keys.get", "keys.list", "keys.update", "keys.rotate", "keys.revoke"],
      ...["connections.set", "connections.get", "connections.list", "connections.remove"],
      ...["connections.reseal"],
      ...["budgets.create", "budgets.get", "budgets.list", "budgets.update", "budgets.remove"],
      ...["budgets.status", "activity.list", "steps.list", "steps.get", "sessions.list"],
      ...["sessions.get", "sessions.transcript", "decisions.list", "decisions.get"],
      ...["recover", "sweep", "checkStore"],
    ])
      expect(outcomes.get(name), name).toMatchObject({
        code: "evidence_unavailable",
        status: 503,
        cause: failure,
      });
    await gateway.close();
  });

  it("reports that the store can't be opened", async () => {
    const store = { ...memoryStore(), migrate: fail };
    const gateway = createGateway({ store, providers: { test: scriptedProvider() } });
    for (const call of [gateway.ready, () => gateway.keys.list(organization)])
      expect(await outcomeOf(call)).toMatchObject({ code: "evidence_unavailable", cause: failure });
  });
});
