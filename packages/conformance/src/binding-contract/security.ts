import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { chatPath, drive } from "./drive.ts";
import { describeForwarding } from "./forwarding.ts";
import { exchange, json, length, signed, statusOf, text } from "./raw-exchange.ts";
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

function describeTargets(binding: Binding): void {
  const path = `/ai${chatPath}`;
  it.each([
    ["the plain path", path, "gateway.test"],
    ["another host", path, "localhost:1@elsewhere.test"],
    ["a host with a path", path, "gateway.test/v1/models"],
    ["an absolute target", `http://elsewhere.test${path}`, "gateway.test"],
    ["a double slash first", `/${path}`, "gateway.test"],
    ["a double slash inside", "/ai//v1/chat/completions", "gateway.test"],
    ["a path parameter", `${path};x=1`, "gateway.test"],
    ["an encoded slash", "/ai/v1/chat%2fcompletions", "gateway.test"],
    ["dot segments", "/ai/v1/models/../chat/completions", "gateway.test"],
    ["encoded dot segments", "/ai/v1/models/%2e%2e/chat/completions", "gateway.test"],
    ["a slash at the end", `${path}/`, "gateway.test"],
    ["another case", "/ai/V1/Chat/Completions", "gateway.test"],
    ["another route in the query", `${path}?/v1/models`, "gateway.test"],
    ["another route after it", `/ai/v1/models${chatPath}`, "gateway.test"],
  ])("rejects a request without a key with %s (S4)", async (_name, target, host) => {
    const driven = await drive(binding);
    const lines = [`POST ${target} HTTP/1.1`, `host: ${host}`, "connection: close", json, length];
    const status = statusOf(await exchange(driven, lines));
    // A host may also redirect to the path in its regular form.
    expect(status).toBeGreaterThanOrEqual(300);
    expect(status).toBeLessThan(500);
    expect(driven.provider.calls).toEqual([]);
  });

  it.each([
    "x-middleware-subrequest: middleware:middleware:middleware:middleware:middleware",
    "x-forwarded-for: 127.0.0.1",
    "x-original-url: /public",
    "x-http-method-override: GET",
    "authorization: Bearer",
    "authorization: Basic dXNlcjpwYXNz",
  ])("rejects a request without a key with %s (S5)", async (header) => {
    const driven = await drive(binding);
    const path = `POST /ai${chatPath} HTTP/1.1`;
    const lines = [path, "host: a", "connection: close", json, length, header];
    expect(statusOf(await exchange(driven, lines))).toBe(401);
    expect(driven.provider.calls).toEqual([]);
  });

  it("rejects a key given twice (S5)", async () => {
    const driven = await drive(binding);
    const path = `POST /ai${chatPath} HTTP/1.1`;
    const twice = ["authorization: Bearer tg_other", signed(driven)];
    const lines = [path, "host: a", "connection: close", json, length, ...twice];
    expect(statusOf(await exchange(driven, lines))).toBe(401);
    expect(driven.provider.calls).toEqual([]);
  });
}

function describeContentTypes(binding: Binding): void {
  const line = `POST /ai${chatPath} HTTP/1.1`;
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
    const rest = ["host: a", "connection: close", length, ...types];
    expect(statusOf(await exchange(driven, [line, ...rest, signed(driven)]))).toBe(status);
    expect(driven.provider.calls).toHaveLength(status === 200 ? 1 : 0);
    const anonymous = statusOf(await exchange(driven, [line, ...rest]));
    expect([401, 415]).toContain(anonymous);
  });

  it("rejects a content type given twice (S5)", async () => {
    const driven = await drive(binding);
    const types = ["content-type: text/plain", json];
    const lines = [line, "host: a", "connection: close", length, ...types, signed(driven)];
    expect(statusOf(await exchange(driven, lines))).toBe(415);
    expect(driven.provider.calls).toEqual([]);
  });
}

function describeSmuggling(binding: Binding): void {
  const chunked = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  it.each([
    ["a length and chunks", [length, "transfer-encoding: chunked"], chunked],
    ["two lengths", [length, "Content-Length: 3"], text],
    ["a length that is not a number", ["content-length: +5"], text],
    ["chunks that are not the last encoding", ["transfer-encoding: chunked, identity"], chunked],
    ["a space before the colon", ["content-length : 5"], text],
    ["a folded header", [length, "x-folded: a\r\n b"], text],
    ["a header with a bare line feed", [length, "x-a: b\nx-c: d"], text],
    ["chunks without a size", ["transfer-encoding: chunked"], "zz\r\n{}\r\n0\r\n\r\n"],
  ])("rejects a request with %s and closes its connection (S29)", async (_name, framing, body) => {
    const driven = await drive(binding);
    const line = `POST /ai${chatPath} HTTP/1.1`;
    const answer = await exchange(
      driven,
      [line, "host: a", json, signed(driven), ...framing],
      body,
    );
    expect(statusOf(answer)).toBe(400);
    expect(answer.split("HTTP/1.1 ")).toHaveLength(2);
    expect(driven.provider.calls).toEqual([]);
  });

  it("ignores a request inside the body of another (S29)", async () => {
    const driven = await drive(binding);
    const inner = [`POST /ai${chatPath} HTTP/1.1`, "host: a", json, length, signed(driven)];
    const body = `${inner.join("\r\n")}\r\n\r\n${text}`;
    const outer = ["GET /ai/v1/models HTTP/1.1", "host: a", "connection: close", signed(driven)];
    await exchange(driven, [...outer, `content-length: ${body.length}`], body);
    expect(driven.provider.calls).toEqual([]);
  });
}
