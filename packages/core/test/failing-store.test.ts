import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { createGateway, GatewayError } from "../src/index.ts";
import { openOwnGateways } from "./own-gateways.ts";

const failure = new Error("disk I/O error");
const fail = (): Promise<never> => Promise.reject(failure);

/** A store of which everything fails from `break()` on. */
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
const connection = { ...organization, gateway: "own", apiKey: "sk-1" };

/** What gets a method as far as the store where one record's name does not. */
const others: Readonly<Record<string, object>> = {
  "keys.create": { ...organization, userId: "ada", label: "laptop" },
  "budgets.create": budget,
  "budgets.update": budget,
};

async function outcome(call: () => unknown): Promise<unknown> {
  try {
    const result: unknown = call();
    if (typeof result !== "object" || result === null) return result;
    if (Symbol.asyncIterator in result && typeof result[Symbol.asyncIterator] === "function")
      for await (const _row of result as AsyncIterable<unknown>);
    return await result;
  } catch (error) {
    return error;
  }
}

const argumentFor = (noun: string, name: string): object => {
  if (noun === "connections") return connection;
  return others[`${noun}.${name}`] ?? (name === "list" ? organization : record);
};

/** Every method of the administration, by name. */
const methodsOf = (gateway: object): readonly (readonly [string, () => unknown])[] =>
  Object.entries(gateway).flatMap(([noun, members]) =>
    typeof members !== "object" || members === null || noun === "handlers"
      ? []
      : Object.entries(members).flatMap(([name, method]: readonly [string, unknown]) =>
          typeof method === "function"
            ? [
                [
                  `${noun}.${name}`,
                  () =>
                    Reflect.apply(method, members, [argumentFor(noun, name), { format: "csv" }]),
                ] as const,
              ]
            : [],
        ),
  );

describe("the administration over a store that fails", () => {
  it("fails with a GatewayError that keeps the cause, whatever is asked", async () => {
    const broken = breakable(memoryStore());
    const { gateway } = await openOwnGateways({ store: broken.store });
    broken.break();
    const outcomes = new Map<string, unknown>();
    for (const [name, call] of methodsOf(gateway)) outcomes.set(name, await outcome(call));
    outcomes.set("recover", await outcome(gateway.recover));
    outcomes.set("sweep", await outcome(gateway.sweep));
    outcomes.set("checkStore", await outcome(gateway.checkStore));
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

  it("says so when the store cannot be opened", async () => {
    const store = { ...memoryStore(), migrate: fail };
    const gateway = createGateway({ store, providers: { test: scriptedProvider() } });
    for (const call of [gateway.ready, () => gateway.keys.list(organization)])
      expect(await outcome(call)).toMatchObject({ code: "evidence_unavailable", cause: failure });
  });
});
