import { describe, expect, it } from "vitest";
import { callOf, connected, failureOf, httpAnswer, outcomeOf } from "./drive.ts";
import type { CreateProvider, ProviderFixtures } from "./fixtures.ts";

/** How a provider stops when its caller cancels. */
export function describeEndings(create: CreateProvider, fixtures: ProviderFixtures): void {
  const reason = new Error("the caller left");

  describe("endings", () => {
    it("sends nothing when the call was aborted before it began", async () => {
      const { upstream, provider } = await connected(create, () => {});
      const { thrown } = await outcomeOf(provider, callOf({ signal: AbortSignal.abort(reason) }));
      expect(thrown).toBe(reason);
      expect(upstream.connections.made).toBe(0);
    });

    it("stops waiting and closes its connection when the call is aborted", async () => {
      const caller = new AbortController();
      const { upstream, provider } = await connected(create, () => caller.abort(reason));
      const { thrown } = await outcomeOf(provider, callOf({ signal: caller.signal }));
      expect(thrown).toBe(reason);
      await upstream.requests[0]?.closed;
      expect(upstream.connections.open).toBe(0);
    });

    it("stops in the middle of an answer and closes its connection when the call is aborted", async () => {
      const caller = new AbortController();
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.cut, "until-closed")),
      );
      const seen: string[] = [];
      const reading = async (): Promise<void> => {
        for await (const batch of provider.complete(callOf({ signal: caller.signal }))) {
          seen.push(...batch.map(({ type }) => type));
          if (seen.includes("text-delta")) setImmediate(() => caller.abort(reason));
        }
      };
      await expect(reading()).rejects.toBe(reason);
      await upstream.requests[0]?.closed;
    });

    it("closes its connection when the iteration ends early", async () => {
      const { upstream, provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.cut, "until-closed")),
      );
      for await (const batch of provider.complete(callOf()))
        if (batch.some(({ type }) => type === "text-delta")) break;
      await upstream.requests[0]?.closed;
    });

    it("can be closed twice, and sends nothing afterwards", async () => {
      const { upstream, provider } = await connected(create, () => {});
      await provider.close();
      await provider.close();
      expect(await failureOf(provider, callOf())).toMatchObject({ delivery: "not-sent" });
      expect(upstream.connections.made).toBe(0);
    });

    it("fails its open calls when it is closed", async () => {
      const { provider } = await connected(create, () => provider.close());
      expect(await failureOf(provider, callOf())).toMatchObject({ delivery: "unknown" });
    });
  });
}
