import { scriptedUpstream, type UpstreamExchange } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Binding } from "./binding.ts";
import { chatPath, drive, embeddingsPath, endpoints } from "./drive.ts";
import { exchange, json, rawRequest, signed, statusOf } from "./raw-exchange.ts";

/** Headers with a meaning for proxies, frameworks and client libraries. */
const meaningful = [
  ...["cookie", "forwarded", "proxy-authorization", "x-forwarded-host", "x-forwarded-proto"],
  ...["x-api-key", "api-key", "openai-organization", "x-stainless-lang", "x-middleware-rewrite"],
  ...["te", "x-real-ip", "x-original-url", "via", "origin", "referer", "user-agent"],
];

/** No client header reaches a provider. */
export function describeForwarding(binding: Binding): void {
  describe("the client's headers", () => {
    describeCanaries(binding);
    describeFuzzedSets(binding);
  });
}

function describeCanaries(binding: Binding): void {
  it.each(endpoints)("never reach the provider from %s (S13)", async (path) => {
    const driven = await drive(binding);
    const { line, text, length } = rawRequest(path);
    for (const name of meaningful) {
      const lines = [line, "host: canary.test", "connection: close", json, length, signed(driven)];
      const answer = await exchange(driven, [...lines, `${name}: canary-of-${name}`], text);
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

/** Header names: with a known meaning, of a known family, or random. */
const headerName = fc.oneof(
  fc.constantFrom(...meaningful, "keep-alive", "proxy-connection", "accept-encoding", "priority"),
  fc
    .tuple(
      fc.constantFrom("x-forwarded-", "proxy-", "x-stainless-", "openai-", "x-any-"),
      fc.stringMatching(/^[a-z0-9]{1,8}$/),
    )
    .map((parts) => parts.join("")),
);
type HeaderSet = readonly (readonly [name: string, value: string])[];
const headerSet: fc.Arbitrary<HeaderSet> = fc.uniqueArray(
  fc.tuple(headerName, fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/)),
  { selector: ([name]) => name, minLength: 1, maxLength: 12 },
);
const atOnce = 20;
/** Headers are read before the path matters, so one endpoint gets most of the sets. */
const roundsOf = (path: string): number => (path === chatPath ? 25 : 7);

/** A complete answer of a Chat Completions upstream to either kind of request. */
const completion = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  data: [{ index: 0, embedding: [0.5] }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const completed = `HTTP/1.1 200 OK\r\n${json}\r\ncontent-length: ${completion.length}\r\n\r\n${completion}`;

function describeFuzzedSets(binding: Binding): void {
  it.each(endpoints)(
    "never change the request that %s sends to the provider (S13)",
    async (path) => {
      const upstream = await scriptedUpstream(({ send }) => send(completed));
      onTestFinished(() => upstream.close());
      const providers = { test: binding.provider(`${upstream.url}/v1`) };
      const driven = await drive(binding, {}, { providers });
      const { line, text, length } = rawRequest(path);
      const plain = [line, "host: gateway.test", json, length, signed(driven)];
      const ask = async (headers: HeaderSet): Promise<void> => {
        const lines = headers.map(([name, value]) => `${name}: ${value}`);
        const close = `connection: ${["close", ...headers.map(([name]) => name)].join(", ")}`;
        expect(statusOf(await exchange(driven, [...plain, close, ...lines], text))).toBe(200);
      };
      await ask([]);
      const sent = told(upstream.requests[0]);
      const asked = path === embeddingsPath ? "embeddings" : "chat/completions";
      expect(sent.startsWith(`POST /v1/${asked} `)).toBe(true);
      expect(sent).not.toContain(driven.key.secret);
      const rounds = roundsOf(path);
      const manySets = fc.array(headerSet, { minLength: atOnce, maxLength: atOnce });
      await fc.assert(
        fc.asyncProperty(manySets, async (sets) => {
          await Promise.all(sets.map(ask));
          expect(upstream.requests.slice(-atOnce).map(told)).toEqual(Array(atOnce).fill(sent));
        }),
        { numRuns: rounds },
      );
      expect(upstream.requests.length).toBeGreaterThan(rounds * atOnce);
    },
  );
}

/** A request as the upstream received it, byte for byte. */
const told = (request: UpstreamExchange | undefined): string =>
  `${request?.head}\r\n\r\n${request?.body}`;
