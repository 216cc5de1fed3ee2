import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { chatPath, drive } from "./drive.ts";
import { exchange, json, length, signed, statusOf } from "./raw-exchange.ts";

/** Headers that proxies, frameworks and client libraries give a meaning to. */
const meaningful = [
  ...["cookie", "forwarded", "proxy-authorization", "x-forwarded-host", "x-forwarded-proto"],
  ...["x-api-key", "api-key", "openai-organization", "x-stainless-lang", "x-middleware-rewrite"],
  ...["te", "x-real-ip", "x-original-url", "via", "origin", "referer", "user-agent"],
];

/** Nothing of a client's headers leaves for a provider. */
export function describeForwarding(binding: Binding): void {
  describe("the client's headers", () => {
    describeCanaries(binding);
    describeFuzzedSets(binding);
  });
}

function describeCanaries(binding: Binding): void {
  it("no header of the client reaches the provider", async () => {
    const driven = await drive(binding);
    for (const name of meaningful) {
      const line = `POST /ai${chatPath} HTTP/1.1`;
      const lines = [line, "host: canary.test", "connection: close", json, length, signed(driven)];
      const answer = await exchange(driven, [...lines, `${name}: canary-of-${name}`]);
      expect(statusOf(answer), name).toBe(200);
      expect(answer, name).not.toContain("canary");
    }
    expect(driven.provider.calls).toHaveLength(meaningful.length);
    const { signal: _signal, ...sent } = driven.provider.calls.at(-1) ?? {};
    expect(JSON.stringify(sent)).not.toContain(driven.key.secret);
    const everything = driven.provider.calls.map(({ signal: _, ...call }) => call);
    expect(JSON.stringify(everything)).not.toContain("canary");
  });
}

/** What names a header of the client's: one with a meaning, one of a family that has one, or any other. */
const headerName = fc.oneof(
  fc.constantFrom(...meaningful, "keep-alive", "proxy-connection", "accept-encoding", "priority"),
  fc
    .tuple(
      fc.constantFrom("x-forwarded-", "proxy-", "x-stainless-", "openai-", "x-any-"),
      fc.stringMatching(/^[a-z0-9]{1,8}$/),
    )
    .map((parts) => parts.join("")),
);
const headerSet = fc.uniqueArray(
  fc.tuple(headerName, fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/)),
  { selector: ([name]) => name, minLength: 1, maxLength: 12 },
);
const headerSets = 60;

function describeFuzzedSets(binding: Binding): void {
  it("whatever headers the client sends, the provider is asked exactly the same (S13)", async () => {
    const driven = await drive(binding);
    const line = `POST /ai${chatPath} HTTP/1.1`;
    const plain = [line, "host: gateway.test", "connection: close", json, length, signed(driven)];
    expect(statusOf(await exchange(driven, plain))).toBe(200);
    await fc.assert(
      fc.asyncProperty(headerSet, async (headers) => {
        const lines = headers.map(([name, value]) => `${name}: ${value}`);
        expect(statusOf(await exchange(driven, [...plain, ...lines]))).toBe(200);
        const { signal: _first, ...asked } = driven.provider.calls[0] ?? {};
        const { signal: _last, ...given } = driven.provider.calls.at(-1) ?? {};
        expect(given).toEqual(asked);
      }),
      { numRuns: headerSets },
    );
    expect(driven.provider.calls.length).toBeGreaterThan(headerSets);
  });
}
