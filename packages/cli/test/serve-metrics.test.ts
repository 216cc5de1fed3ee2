import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { serveMetrics } from "../src/serve-metrics.ts";

const canary = "canary-5f20d1";
const read = (path: string): string =>
  readFileSync(new URL(`../../../deploy/${path}`, import.meta.url), "utf8");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** A scrape after requests of every kind: answered, streamed, failed in mid-stream, denied and counted by a budget. */
async function scrapeAfterTraffic(): Promise<string> {
  const { gateway, chat, provider } = await createTestGateway({
    policy: definePolicy({ rules: [permit("all"), forbid("never", { model: "*/*/never" })] }),
    budgets: [
      { id: "day", scope: { organization: "organization-1" }, limit: { usd: 1 }, period: "day" },
    ],
    key: { label: canary },
    prices: {
      factsOf: () => ({ maxOutputTokens: null, reasons: null }),
      priceOf({ model }) {
        if (model === "unpriced") throw new Error(canary);
        return null;
      },
    },
  });
  const server = { port: await freePort(), host: "127.0.0.1" };
  const metrics = await serveMetrics(gateway, server);
  afterAll(() => metrics.close());
  const messages = [{ role: "user", content: canary }];
  const usage = { promptTokens: 9, completionTokens: 5, cachedTokens: 3, reasoningTokens: 2 };
  provider.reply({ text: canary, usage });
  for (const fields of [{}, { stream: true }, { model: "test/tollgate/never" }])
    await (await gateway.fetch(chat({ messages, ...fields }))).text();
  await gateway.fetch(chat({ model: "test/tollgate/unpriced" }));
  const down = new ProviderError("Down.", { reason: "down", delivery: "unknown" });
  provider.fail(down, { afterEvents: 3, answer: { text: ["one", "two", "three"] } });
  await (await gateway.fetch(chat({ messages, stream: true }))).text();
  // Node reports the delay of the event loop once it has sampled it.
  return vi.waitFor(async () => {
    const text = await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
    expect(text).toContain("nodejs_eventloop_delay_p99");
    return text;
  });
}

describe("tollgate serve --metrics-port", () => {
  let scrape = "";
  beforeAll(async () => {
    scrape = await scrapeAfterTraffic();
  });

  it.each(["grafana/tollgate.json", "prometheus/alerts.yml", "prometheus/alerts.test.yml"])(
    "serves every metric and label that deploy/%s reads",
    (path) => {
      const text = read(path);
      const names = text.match(/\b(?:tollgate|gen_ai|nodejs)_[a-z0-9_]+/g) ?? [];
      const known = new Set(scrape.match(/[a-z][a-z0-9_]+/g));
      expect(names.length).toBeGreaterThan(3);
      expect(names.filter((name) => !known.has(name))).toEqual([]);
    },
  );

  it("contains neither content nor labels", () => {
    expect(scrape).toContain("tollgate_requests_total");
    expect(scrape).not.toContain(canary);
  });

  it("fails clearly when its port is taken", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { gateway } = await createTestGateway();
    await expect(serveMetrics(gateway, { port, host: "127.0.0.1" })).rejects.toThrow(
      `port ${port} of 127.0.0.1 is in use: choose another port with --metrics-port`,
    );
    taken.close();
  });
});
