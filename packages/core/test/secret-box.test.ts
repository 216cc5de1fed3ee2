import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import type { SecretBox } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { openOwnGateways } from "./own-gateways.ts";
import { failureOf } from "./wire.ts";

const acme = { organizationId: "organization-1", gateway: "own" };

/** A box that a test controls. */
function fakeBox(overrides: Partial<SecretBox> = {}): SecretBox {
  return {
    contract: 1,
    current: "arn:kms/1",
    wrap: async (dataKey) => ({ keyId: "arn:kms/1", wrapped: Buffer.from(dataKey).reverse() }),
    unwrap: async ({ wrapped }) => Buffer.from(wrapped).reverse(),
    ...overrides,
  };
}

describe("a box backed by a key management service", () => {
  it("is called once for concurrent requests, and again after 5 seconds", async () => {
    const asked: string[] = [];
    const secrets = fakeBox({
      unwrap: ({ keyId, wrapped }, context) => {
        asked.push(`${keyId} ${Buffer.from(context)}`);
        return Buffer.from(wrapped).reverse();
      },
    });
    const { gateway, chat, clock, credentials } = await openOwnGateways({ secrets });
    const { id } = await gateway.connections.set({ ...acme, apiKey: "sk-1" });
    const request = () => gateway.fetch(chat({ model: "own/a/b" }));
    await Promise.all([request(), request(), request()]);
    const context = JSON.stringify(["tollgate.credential", 1, "organization-1", id, "own"]);
    expect(asked).toEqual([`arn:kms/1 ${context}`]);
    await clock.advance("5s");
    await request();
    expect(asked).toHaveLength(2);
    expect(credentials()).toEqual(Array(4).fill("own sk-1"));
  });

  it("is called once, and so is the store, for many concurrent requests", async () => {
    let [unwraps, reads] = [0, 0];
    const secrets = fakeBox({
      unwrap: async ({ wrapped }) => {
        unwraps++;
        await turn();
        return Buffer.from(wrapped).reverse();
      },
    });
    const store = memoryStore();
    const get: typeof store.connections.get = async (organizationId, gateway) => {
      for (let left = ++reads; left > 0; left--) await turn();
      return store.connections.get(organizationId, gateway);
    };
    const slow = { ...store, connections: { ...store.connections, get } };
    const { gateway, chat, credentials } = await openOwnGateways({ secrets, store: slow });
    await gateway.connections.set({ ...acme, apiKey: "sk-1" });
    [unwraps, reads] = [0, 0];
    const requests = Array.from({ length: 32 }, () => gateway.fetch(chat({ model: "own/a/b" })));
    expect(new Set((await Promise.all(requests)).map(({ status }) => status))).toEqual(
      new Set([200]),
    );
    expect({ unwraps, reads }).toEqual({ unwraps: 1, reads: 1 });
    expect(credentials()).toHaveLength(32);
  });

  it("doesn't bring back a credential removed while it was read", async () => {
    const store = memoryStore();
    const held = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    let isSlow = false;
    const get: typeof store.connections.get = async (organizationId, gateway) => {
      const read = await store.connections.get(organizationId, gateway);
      if (!isSlow) return read;
      isSlow = false;
      reached.resolve();
      await held.promise;
      return read;
    };
    const slow = { ...store, connections: { ...store.connections, get } };
    const { gateway, chat } = await openOwnGateways({ store: slow });
    await gateway.connections.set({ ...acme, apiKey: "sk-1" });
    isSlow = true;
    const early = gateway.fetch(chat({ model: "own/a/b" }));
    await reached.promise;
    await gateway.connections.remove(acme);
    held.resolve();
    await early;
    expect((await gateway.fetch(chat({ model: "own/a/b" }))).status).toBe(400);
  });

  it.each([
    ["fails", async () => Promise.reject(new Error("canary-of-the-service"))],
    ["throws", () => fail("canary-of-the-service")],
    ["gives too few bytes", () => new Uint8Array(31)],
    ["gives another key", () => new Uint8Array(32)],
    ["gives nothing", () => JSON.parse("null")],
    ["does not answer", () => new Promise<Uint8Array>(() => {})],
  ])(
    "that %s makes its gateway unavailable within seconds, and nothing is sent",
    async (_, unwrap) => {
      const log = eventLog();
      const secrets = fakeBox({ unwrap });
      const test = await openOwnGateways({ secrets, observers: log.observers });
      await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
      const answering = test.gateway.fetch(test.chat({ model: "own/a/b" }));
      const answer = await test.clock.until(answering, "6s");
      expect(answer.status).toBe(503);
      expect(await failureOf(answer)).toMatchObject({ code: "connection_unavailable" });
      expect(test.upstream.calls).toEqual([]);
      expect(log.seen.filter(({ type }) => type === "connection.unavailable")).toHaveLength(1);
      expect(JSON.stringify(log.seen)).not.toContain("canary");
    },
  );

  it.each([
    ["fails", async () => Promise.reject(new Error("canary-of-the-service"))],
    ["gives no id", () => ({ keyId: "", wrapped: Uint8Array.of(1) })],
    ["gives no bytes", () => ({ keyId: "k", wrapped: new Uint8Array() })],
    ["gives nothing", () => JSON.parse("null")],
  ])("that %s on wrap seals nothing", async (_name, wrap) => {
    const { gateway } = await openOwnGateways({ secrets: fakeBox({ wrap }) });
    const error: unknown = await gateway.connections
      .set({ ...acme, apiKey: "sk-1" })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "connection_unavailable" });
    expect(inspect(error)).not.toContain("canary");
    await expect(gateway.connections.get(acme)).rejects.toMatchObject({
      code: "connection_not_found",
    });
  });

  it("that recovers serves the next attempt, with the current credential", async () => {
    let isDown = true;
    const secrets = fakeBox({
      unwrap: ({ wrapped }) => (isDown ? fail("down") : Buffer.from(wrapped).reverse()),
    });
    const log = eventLog();
    const test = await openOwnGateways({
      secrets,
      observers: log.observers,
      retries: { max: 1 },
    });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    const answering = test.gateway.fetch(test.chat({ model: "own/a/b" }));
    await log.seeing("attempt.ended");
    isDown = false;
    await test.gateway.connections.set({ ...acme, apiKey: "sk-2" });
    expect((await test.clock.until(answering)).status).toBe(200);
    expect(test.credentials()).toEqual(["own sk-2"]);
  });
});

function fail(message: string): never {
  throw new Error(message);
}
