import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { type DrivenGateway, drive, endpoints } from "./drive.ts";
import { describeForwarding } from "./forwarding.ts";
import { exchange, json, rawRequest, signed, statusOf } from "./raw-exchange.ts";
import { describeHostileUpstreams } from "./upstreams.ts";

/** Requests that the gateway itself must reject, without middleware of the host. */
export function describeSecurity(binding: Binding): void {
  describe("without middleware of the host", () => {
    describeTargets(binding);
    describeContentTypes(binding);
    describeForwarding(binding);
    describeSmuggling(binding);
    describeHostileUpstreams(binding);
  });
}

type Path = (typeof endpoints)[number];

const inCapitals = (path: string): string =>
  path.replaceAll(/\/[a-z]/g, (letter) => letter.toUpperCase());

/** The targets of a request that mean its endpoint to some parser, and the hosts it may name. */
const targets: readonly {
  readonly name: string;
  readonly target: (path: Path) => string;
  readonly host?: string;
}[] = [
  { name: "the plain path", target: (path) => `/ai${path}` },
  { name: "another host", target: (path) => `/ai${path}`, host: "localhost:1@elsewhere.test" },
  { name: "a host with a path", target: (path) => `/ai${path}`, host: "gateway.test/v1/models" },
  { name: "an absolute target", target: (path) => `http://elsewhere.test/ai${path}` },
  { name: "a double slash first", target: (path) => `//ai${path}` },
  { name: "a double slash inside", target: (path) => `/ai/${path}` },
  { name: "a path parameter", target: (path) => `/ai${path};x=1` },
  { name: "an encoded slash", target: (path) => `/ai${path.replace(/\/(?=[^/]*$)/, "%2f")}` },
  { name: "dot segments", target: (path) => `/ai${path.replace("/v1", "/v1/models/..")}` },
  {
    name: "encoded dot segments",
    target: (path) => `/ai${path.replace("/v1", "/v1/models/%2e%2e")}`,
  },
  { name: "a slash at the end", target: (path) => `/ai${path}/` },
  { name: "another case", target: (path) => `/ai${inCapitals(path)}` },
  { name: "another route in the query", target: (path) => `/ai${path}?/v1/models` },
  { name: "another route after it", target: (path) => `/ai/v1/models${path}` },
];

function describeTargets(binding: Binding): void {
  it.each(targets)(
    "rejects a request without a key with $name (S4)",
    async ({ target, host = "gateway.test" }) => {
      const driven = await drive(binding);
      for (const path of endpoints) {
        const { text, length } = rawRequest(path);
        const line = `POST ${target(path)} HTTP/1.1`;
        const lines = [line, `host: ${host}`, "connection: close", json, length];
        const status = statusOf(await exchange(driven, lines, text));
        // A host may also redirect to the path in its regular form.
        expect(status, path).toBeGreaterThanOrEqual(300);
        expect(status, path).toBeLessThan(500);
      }
      expect(driven.provider.calls).toEqual([]);
    },
  );

  it.each([
    "x-middleware-subrequest: middleware:middleware:middleware:middleware:middleware",
    "x-forwarded-for: 127.0.0.1",
    "x-original-url: /public",
    "x-http-method-override: GET",
    "authorization: Bearer",
    "authorization: Basic dXNlcjpwYXNz",
  ])("rejects a request without a key with %s (S5)", async (header) => {
    await expectRefused(binding, 401, () => [json, header]);
  });

  it("rejects a key given twice (S5)", async () => {
    const twice = (driven: DrivenGateway) => ["authorization: Bearer tg_other", signed(driven)];
    await expectRefused(binding, 401, (driven) => [json, ...twice(driven)]);
  });
}

/** Checks that each endpoint refuses a request with these headers, and calls no provider. */
async function expectRefused(
  binding: Binding,
  status: number,
  headers: (driven: DrivenGateway) => readonly string[],
): Promise<void> {
  const driven = await drive(binding);
  for (const path of endpoints) {
    const { line, text, length } = rawRequest(path);
    const lines = [line, "host: a", "connection: close", length, ...headers(driven)];
    expect(statusOf(await exchange(driven, lines, text)), path).toBe(status);
  }
  expect(driven.provider.calls).toEqual([]);
}

function describeContentTypes(binding: Binding): void {
  it.each([
    ["application/json", [json], 200],
    ["APPLICATION/JSON", ["content-type: APPLICATION/JSON"], 200],
    ["a parameter", ["content-type: application/json; charset=utf-8"], 200],
    ["a tab and more", ["content-type: application/json\ta"], 415],
    ["text", ["content-type: text/plain"], 415],
    ["a form", ["content-type: application/x-www-form-urlencoded"], 415],
    ["another charset", ["content-type: application/json; charset=iso-8859-1"], 415],
    ["nothing", [], 415],
  ])("rejects any content type except JSON: %s (S5)", async (_name, types, status) => {
    const driven = await drive(binding);
    for (const path of endpoints) {
      const { line, text, length } = rawRequest(path);
      const lines = [line, "host: a", "connection: close", length, ...types];
      expect(statusOf(await exchange(driven, [...lines, signed(driven)], text)), path).toBe(status);
      expect([401, 415]).toContain(statusOf(await exchange(driven, lines, text)));
    }
    expect(driven.provider.calls).toHaveLength(status === 200 ? endpoints.length : 0);
  });

  it("rejects a content type given twice (S5)", async () => {
    const types = ["content-type: text/plain", json];
    await expectRefused(binding, 415, (driven) => [...types, signed(driven)]);
  });
}

type Framing = (text: string) => readonly [headers: readonly string[], body?: string];

const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
const lengthOf = (text: string): string => `content-length: ${text.length}`;

/** Ways to leave open where a body ends. */
const framings: readonly (readonly [name: string, framing: Framing])[] = [
  [
    "a length and chunks",
    (text) => [[lengthOf(text), "transfer-encoding: chunked"], chunked(text)],
  ],
  ["two lengths", (text) => [[lengthOf(text), "Content-Length: 3"]]],
  ["a length that is not a number", () => [["content-length: +5"]]],
  [
    "chunks that are not the last encoding",
    (text) => [["transfer-encoding: chunked, identity"], chunked(text)],
  ],
  ["a space before the colon", () => [["content-length : 5"]]],
  ["a folded header", (text) => [[lengthOf(text), "x-folded: a\r\n b"]]],
  ["a header with a bare line feed", (text) => [[lengthOf(text), "x-a: b\nx-c: d"]]],
  ["chunks without a size", () => [["transfer-encoding: chunked"], "zz\r\n{}\r\n0\r\n\r\n"]],
];

function describeSmuggling(binding: Binding): void {
  it.each(framings)(
    "rejects a request with %s and closes its connection (S29)",
    async (_name, framing) => {
      const driven = await drive(binding);
      for (const path of endpoints) {
        const { line, text } = rawRequest(path);
        const [headers, body = text] = framing(text);
        const lines = [line, "host: a", json, signed(driven), ...headers];
        const answer = await exchange(driven, lines, body);
        expect(statusOf(answer), path).toBe(400);
        expect(answer.split("HTTP/1.1 "), path).toHaveLength(2);
      }
      expect(driven.provider.calls).toEqual([]);
    },
  );

  it("ignores a request inside the body of another (S29)", async () => {
    const driven = await drive(binding);
    for (const path of endpoints) {
      const { line, text, length } = rawRequest(path);
      const inner = [line, "host: a", json, length, signed(driven)];
      const body = `${inner.join("\r\n")}\r\n\r\n${text}`;
      const outer = ["GET /ai/v1/models HTTP/1.1", "host: a", "connection: close", signed(driven)];
      await exchange(driven, [...outer, `content-length: ${body.length}`], body);
    }
    expect(driven.provider.calls).toEqual([]);
  });
}
