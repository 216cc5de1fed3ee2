import { createGateway } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { failureOf, sentIn } from "./wire.ts";

async function stepsOf({ gateway, key: { organizationId } }: Pick<TestGateway, "gateway" | "key">) {
  return (await gateway.steps.list({ organizationId })).data;
}

/** A store that records when it was closed, and refuses later calls. */
function closable() {
  const store = memoryStore();
  let isClosed = false;
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const closing: Store = {
    ...store,
    keys: {
      ...store.keys,
      async findByDigest(digest, at) {
        reached.resolve();
        await released.promise;
        if (isClosed) throw new Error("the store is closed");
        return store.keys.findByDigest(digest, at);
      },
    },
    async close() {
      isClosed = true;
    },
  };
  return { store: closing, reached: reached.promise, release: () => released.resolve() };
}

describe("an answer that nobody reads", () => {
  it("ends when its gateway closes, and a late reader learns of it", async () => {
    const test = await createTestGateway();
    test.provider.reply({ text: ["one ", "two ", "three"] });
    const answer = await test.gateway.fetch(test.chat({ stream: true }));
    await test.clock.until(test.gateway.close());
    expect(await stepsOf(test)).toMatchObject([{ outcome: "failed", reason: "gateway_closed" }]);
    const sent = sentIn(await answer.text());
    expect(sent.map(({ type }) => type).slice(-2)).toEqual(["error", "done"]);
    expect(sent.at(-2)).toMatchObject({
      error: { code: "overloaded", message: expect.stringContaining("gateway was closed") },
    });
  });

  it("ends at the deadline of the whole answer", async () => {
    const test = await createTestGateway({ deadlines: { total: "60s" } });
    test.provider.reply({ text: ["one ", "two ", "three"] });
    await test.gateway.fetch(test.chat({ stream: true }));
    await test.clock.advance("61s");
    expect(await stepsOf(test)).toMatchObject([{ outcome: "failed", reason: "deadline" }]);
  });
});

describe("a provider that doesn't stop when asked to", () => {
  const deaf = async function* () {
    yield [{ type: "request-sent" as const, host: "deaf.test", bodySha256: "00" }];
    await new Promise(() => {});
  };

  it("delays neither a request beyond its deadline nor a closing gateway", async () => {
    const { provider } = await createTestGateway();
    const providers = { deaf: { ...provider.at("deaf"), complete: deaf } };
    const test = await createTestGateway({ providers, deadlines: { total: "20s", close: "5s" } });
    const ask = () => test.gateway.fetch(test.chat({ model: "deaf/a/b" }));
    const answer = await test.clock.until(ask());
    expect(answer.status).toBe(504);
    expect(await stepsOf(test)).toMatchObject([{ outcome: "failed", reason: "deadline" }]);
    const running = ask();
    await test.clock.until(test.gateway.close());
    expect((await running).status).toBe(503);
  });
});

describe("a gateway that closes", () => {
  it("answers the admitted requests before it closes the store", async () => {
    const { store, reached, release } = closable();
    const { gateway, chat, clock } = await createTestGateway({ store });
    const admitted = gateway.fetch(chat());
    await reached;
    const closing = gateway.close();
    await clock.advance("1s");
    release();
    expect((await admitted).status).toBe(200);
    await closing;
  });

  it.each([
    [undefined, 20_000],
    ["60s", 55_000],
    ["5s", 4_000],
  ] as const)(
    "ends running answers when part of its time is left (within %s, H6)",
    async (within, at) => {
      const { gateway, provider, chat, clock } = await createTestGateway();
      const hold = provider.hold();
      const begun = clock.monotonic();
      const running = gateway
        .fetch(chat())
        .then((answer) => [answer.status, clock.monotonic() - begun]);
      await hold.reached();
      await clock.until(gateway.close(within === undefined ? {} : { within }));
      expect(await running).toEqual([503, at]);
    },
  );

  it("ends sooner when closed again with less time, and no later with more", async () => {
    const { gateway, provider, chat, clock } = await createTestGateway();
    const hold = provider.hold();
    const begun = clock.monotonic();
    const running = gateway
      .fetch(chat())
      .then((answer) => [answer.status, clock.monotonic() - begun]);
    await hold.reached();
    const closing = [
      gateway.close(),
      gateway.close({ within: 1_000 }),
      gateway.close({ within: "1h" }),
    ];
    await clock.until(Promise.all(closing));
    expect(await running).toEqual([503, 800]);
    await expect(gateway.close({ within: -1 })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("takes no longer than allowed if the store doesn't settle or close", async () => {
    const never = () => new Promise<never>(() => {});
    const store: Store = { ...memoryStore(), settleStep: never, close: never };
    const { gateway, provider, chat, clock } = await createTestGateway({ store });
    const hold = provider.hold();
    const begun = clock.monotonic();
    void gateway.fetch(chat());
    await hold.reached();
    await clock.until(gateway.close());
    expect(clock.monotonic() - begun).toBe(25_000);
  });

  it("no longer opens its store", async () => {
    let migrations = 0;
    const store: Store = { ...memoryStore(), migrate: async () => void migrations++ };
    const { provider, key } = await createTestGateway();
    const gateway = createGateway({ store, providers: { test: provider } });
    await gateway.close();
    await expect(gateway.ready()).rejects.toMatchObject({ code: "overloaded" });
    const { organizationId, id } = key;
    await expect(gateway.keys.get({ organizationId, id })).rejects.toMatchObject({
      code: "overloaded",
    });
    expect(migrations).toBe(0);
  });

  it("leaves no timer behind", async () => {
    const { gateway, chat, clock } = await createTestGateway();
    await gateway.fetch(chat());
    await gateway.close();
    expect(clock.timers()).toBe(0);
  });

  it("advises a retry only to clients whose call was not sent", async () => {
    const upstreams = { test: { concurrency: 1 } };
    const { gateway, provider, chat, clock } = await createTestGateway({ upstreams });
    const hold = provider.hold();
    const answers = [gateway.fetch(chat())];
    await hold.reached();
    answers.push(gateway.fetch(chat()));
    await clock.advance("1s");
    await clock.until(gateway.close({ within: "5s" }));
    const [sent, waiting] = await Promise.all(answers);
    expect(sent?.headers.get("x-should-retry")).toBe("false");
    expect(waiting?.headers.get("x-should-retry")).toBe("true");
  });

  it("hides the provider's error from the client", async () => {
    const { gateway, provider, chat, clock } = await createTestGateway();
    const hold = provider.hold();
    const running = gateway.fetch(chat());
    await hold.reached();
    await clock.until(gateway.close());
    expect(await failureOf(running)).toMatchObject({ code: "overloaded" });
  });
});
