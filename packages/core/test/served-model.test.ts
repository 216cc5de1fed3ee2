import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";

const down = new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 });
const policy = definePolicy({ rules: [permit("all", {}, { fallbacks: ["test/a/spare"] })] });
const options = { policy, retries: { max: 0 } };

const responses = (fields: Record<string, unknown>, secret: string) =>
  new Request("http://test/v1/responses", {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "test/tollgate/scripted", input: "Hello", ...fields }),
  });

describe("X-Service-Model", () => {
  it.each([false, true])("names the model that served, with stream: %s", async (stream) => {
    const { gateway, provider, chat, key } = await createTestGateway(options);
    for (const request of [() => chat({ stream }), () => responses({ stream }, key.secret)]) {
      const plain = await gateway.fetch(request());
      expect(plain.headers.get("x-service-model")).toBe("test/tollgate/scripted");
      await plain.text();
      provider.fail(down);
      const fallen = await gateway.fetch(request());
      expect(fallen.status).toBe(200);
      expect(fallen.headers.get("x-service-model")).toBe("test/a/spare");
      await fallen.text();
    }
  });

  it("is missing on errors", async () => {
    const { gateway, provider, chat } = await createTestGateway({ retries: { max: 0 } });
    provider.fail(down);
    const answer = await gateway.fetch(chat());
    expect(answer.ok).toBe(false);
    expect(answer.headers.get("x-service-model")).toBeNull();
  });

  it("is missing if a stream's headers can't wait for the model", async () => {
    const { gateway, provider, chat, clock } = await createTestGateway({
      ...options,
      deadlines: { headers: "1s" },
    });
    provider.reply({ text: "late", delay: "5s" });
    const answer = await clock.until(gateway.fetch(chat({ stream: true })));
    expect(answer.headers.get("x-service-model")).toBeNull();
    expect(answer.headers.get("x-service-policy-decision-id")).not.toBeNull();
    await clock.until(answer.text());
  });

  it("has the prefix of the other headers, and only ASCII", async () => {
    const { gateway, chat } = await createTestGateway({ headerPrefix: "X-App-" });
    const answer = await gateway.fetch(chat({ model: "test/a/mod\u00e8le-\u{1f600}" }));
    expect(answer.headers.get("x-app-model")).toBe("test/a/mod%C3%A8le-%F0%9F%98%80");
    expect(answer.headers.get("x-service-model")).toBeNull();
  });
});
