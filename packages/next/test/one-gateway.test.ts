import { createGateway } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";

const create = () =>
  createGateway({ store: memoryStore(), providers: { test: scriptedProvider() } });

let edits = 0;

/** Simulates an edit under `next dev`: the module is loaded again without its state. */
async function reload() {
  edits += 1;
  const path = `../src/one-gateway.ts?edit=${edits}`;
  const module: typeof import("../src/one-gateway.ts") = await import(path);
  return module.oneGateway;
}

describe("one gateway", () => {
  it("survives ten edits under next dev", async () => {
    const made: ReturnType<typeof create>[] = [];
    const held = new Set<unknown>();
    const loaded = new Set<unknown>();
    for (let edit = 0; edit < 10; edit++) {
      const oneGateway = await reload();
      loaded.add(oneGateway);
      held.add(
        oneGateway(() => {
          const gateway = create();
          made.push(gateway);
          return gateway;
        }, "ten edits"),
      );
    }
    onTestFinished(async () => void (await made[0]?.close()));
    expect(loaded.size).toBe(10);
    expect(made).toHaveLength(1);
    expect([...held]).toEqual(made);
  });

  it("differs under another name", async () => {
    const oneGateway = await reload();
    const [first, second] = ["chat", "jobs"].map((name) => oneGateway(create, name));
    onTestFinished(async () => {
      await first?.close();
      await second?.close();
    });
    expect(first).not.toBe(second);
  });

  it("is created by the next call if the first one fails", async () => {
    const oneGateway = await reload();
    const fail = () => {
      throw new Error("no database");
    };
    expect(() => oneGateway(fail, "late")).toThrow("no database");
    const gateway = oneGateway(create, "late");
    onTestFinished(() => gateway.close());
    expect(gateway.fetch).toBeTypeOf("function");
  });
});
