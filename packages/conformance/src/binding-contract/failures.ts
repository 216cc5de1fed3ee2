import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import {
  anyErrorOf,
  bodies,
  chatPath,
  conversations,
  drive,
  endpoints,
  errorMembers,
  errorOf,
} from "./drive.ts";

const rejected = new ProviderError("The upstream said no.", {
  reason: "status_500",
  delivery: "answered",
  status: 500,
});

/** Failures reach the client as the gateway's own answers, however the host handles errors. */
export function describeFailures(binding: Binding): void {
  describe("a failure", () => {
    it.each(endpoints)("of %s has its status, its shape and its headers", async (path) => {
      const { post } = await drive(binding);
      const refused = [
        [await post(path, bodies[path](), { authorization: "Bearer tg_wrong" }), 401],
        [await post(path, {}), 400],
        [await post(path, { ...bodies[path](), model: "nowhere/some/model" }), 404],
      ] as const;
      for (const [answer, status] of refused) {
        expect(answer.status).toBe(status);
        expect(answer.headers.get("x-should-retry")).toBe("false");
        expect(answer.headers.get("x-request-id")).toMatch(/./);
        expect(Object.keys(await anyErrorOf(answer))).toEqual(errorMembers[path]);
      }
    });

    it("of the policy denies the request without calling a provider", async () => {
      const policy = definePolicy({ rules: [permit("public", { upTo: "D0_PUBLIC" })] });
      const { post, provider } = await drive(binding, {}, { policy });
      const answer = await post(chatPath, bodies[chatPath]());
      expect(answer.status).toBe(403);
      expect(await errorOf(answer)).toMatchObject({ code: "policy_denied" });
      expect(provider.calls).toEqual([]);
    });

    it("of the provider before its answer becomes a status", async () => {
      const { post, provider } = await drive(binding, {}, { retries: { max: 0 } });
      provider.fail(rejected, { times: Number.POSITIVE_INFINITY });
      const answer = await post(chatPath, { ...bodies[chatPath](), stream: true });
      expect(answer.status).toBe(502);
      expect(await errorOf(answer)).toMatchObject({ code: "upstream_error" });
    });

    it.each(conversations)(
      "of the provider during a stream of %s is reported in the stream",
      async (path) => {
        const { post, provider } = await drive(binding);
        const answer = { text: ["half an ", "answer"] };
        provider.fail(rejected, { afterEvents: 2, answer, times: Number.POSITIVE_INFINITY });
        const streamed = await post(path, { ...bodies[path](), stream: true });
        expect(streamed.status).toBe(200);
        const text = await streamed.text();
        expect(text).toContain("half an ");
        expect(text).toMatch(/upstream_error|response\.failed|event: error/);
        expect(text).not.toMatch(/response\.completed|"finish_reason":"stop"|message_stop/);
      },
    );

    it("of a closed gateway asks the client to retry", async () => {
      const { post, gateway } = await drive(binding);
      await gateway.close();
      const answer = await post(chatPath, bodies[chatPath]());
      expect(answer.status).toBe(503);
      expect(answer.headers.get("retry-after")).toBe("1");
      expect(await errorOf(answer)).toMatchObject({ code: "overloaded" });
    });
  });
}
