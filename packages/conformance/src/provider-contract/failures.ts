import { ProviderError } from "@tollgate/core/provider";
import { scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { callOf, connected, credential, failureOf, httpAnswer, outcomeOf } from "./drive.ts";
import { type CreateProvider, canary, type ProviderFixtures } from "./fixtures.ts";

/** How a provider reports failures. */
export function describeFailures(create: CreateProvider, fixtures: ProviderFixtures): void {
  const redirect = { status: 307, contentType: "text/plain", body: canary };

  describe("failures", () => {
    it("reports that nothing was sent if the upstream refuses the connection", async () => {
      const { upstream, provider } = await connected(create, () => {});
      await upstream.close();
      expect(await failureOf(provider, callOf())).toMatchObject({
        delivery: "not-sent",
        status: null,
      });
    });

    for (const how of ["end", "reset"] as const)
      it(`reports an unknown outcome after a ${how} without an answer`, async () => {
        const { provider } = await connected(create, (exchange) => exchange[how]());
        expect(await failureOf(provider, callOf())).toMatchObject({
          delivery: "unknown",
          status: null,
        });
      });

    it("reports the status of an upstream error, but not its text", async () => {
      const { provider } = await connected(create, ({ send }) => send(httpAnswer(fixtures.error)));
      const failure = await failureOf(provider, callOf());
      const { status } = fixtures.error;
      expect(failure).toMatchObject({ delivery: "answered", status, reason: `status_${status}` });
      expectSilent(failure);
    });

    it("does not follow redirects", async () => {
      const elsewhere = await scriptedUpstream(() => {});
      const { provider } = await connected(create, ({ send }) => {
        const answer = httpAnswer(redirect).toString();
        return send(answer.replace("\r\n", `\r\nlocation: ${elsewhere.url}\r\n`));
      });
      const failure = await failureOf(provider, callOf());
      expect(failure).toMatchObject({ status: 307, reason: "redirect_refused" });
      expect(elsewhere.connections.made).toBe(0);
      await elsewhere.close();
    });

    it("rejects a truncated stream, however it ends", async () => {
      for (const framing of ["length", "until-closed"] as const) {
        const { provider } = await connected(create, async ({ send, end }) => {
          await send(httpAnswer(fixtures.cut, framing));
          end();
        });
        const { events, thrown } = await outcomeOf(provider, callOf());
        expect(thrown).toMatchObject({ name: "ProviderError", delivery: "unknown" });
        expect(events.some(({ type }) => type === "text-delta")).toBe(true);
        expect(events.some(({ type }) => type === "finish")).toBe(false);
      }
    });

    it("passes on the events before a reset, then fails", async () => {
      const textSeen = Promise.withResolvers<void>();
      const { provider } = await connected(create, async ({ send, reset }) => {
        await send(httpAnswer(fixtures.cut, "until-closed"));
        await textSeen.promise;
        reset();
      });
      const reading = async (): Promise<void> => {
        for await (const batch of provider.complete(callOf()))
          if (batch.some(({ type }) => type === "text-delta")) textSeen.resolve();
      };
      await expect(reading()).rejects.toMatchObject({ name: "ProviderError", delivery: "unknown" });
    });

    it("fails on an error inside a stream, without repeating its text", async () => {
      const { provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.failing)),
      );
      const { events, thrown } = await outcomeOf(provider, callOf());
      expect(events.some(({ type }) => type === "text-delta")).toBe(true);
      expect(thrown).toMatchObject({ name: "ProviderError" });
      expectSilent(thrown);
    });

    for (const [what, contentType, body] of [
      ["a web page", "text/html", "<html></html>"],
      ["an empty body", "application/json", ""],
      ["another kind of JSON", "application/json", "{}"],
      ["an empty stream", "text/event-stream", ""],
    ] as const)
      it(`rejects ${what} as an answer`, async () => {
        const { provider } = await connected(create, ({ send }) =>
          send(httpAnswer({ status: 200, contentType, body })),
        );
        for (const stream of [true, false])
          expect((await failureOf(provider, callOf({ stream }))).delivery).toBe("unknown");
      });

    it("rejects more bytes than the call allows", async () => {
      const { provider } = await connected(create, ({ send }) =>
        send(httpAnswer(fixtures.text.stream)),
      );
      for (const limits of [
        { eventBytes: 8, totalBytes: 1_000_000, bodyBytes: 4_194_304 },
        { eventBytes: 1_000_000, totalBytes: 8, bodyBytes: 4_194_304 },
      ])
        await failureOf(provider, callOf({ limits }));
    });

    it("sends nothing on a customer-owned connection without a credential", async () => {
      const { upstream, provider } = await connected(create, () => {}, "customer");
      expect(await failureOf(provider, callOf())).toMatchObject({ delivery: "not-sent" });
      expect(upstream.connections.made).toBe(0);
    });
  });
}

/** Checks that neither the upstream's text nor the credential is visible to callers or in records. */
function expectSilent(failure: unknown): void {
  if (!(failure instanceof ProviderError))
    throw new Error("not a ProviderError", { cause: failure });
  const { message, reason, code, param, cause } = failure;
  const seen = JSON.stringify([message, reason, code, param, String(cause)]);
  expect(seen).not.toContain(canary);
  expect(seen).not.toContain(credential);
}
