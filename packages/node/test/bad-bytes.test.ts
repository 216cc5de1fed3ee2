import { afterEach, describe, expect, it } from "vitest";
import { type FetchHandler, type RunningServer, type ServeOptions, serve } from "../src/index.ts";
import { post, rawClient } from "./raw-client.ts";

let server: RunningServer | undefined;
let seen: string[] = [];

const echo: FetchHandler = {
  async fetch(request) {
    const body = await request.text();
    seen.push(`${request.method} ${request.url} ${body}`);
    return new Response("answered", { headers: { connection: "close" } });
  },
};

async function sendBytes(bytes: string, options: ServeOptions = {}): Promise<string> {
  server = await serve(echo, { port: 0, ...options });
  const client = await rawClient(server.url);
  client.write(bytes);
  return client.closed();
}

function errorOf(answer: string): unknown {
  return JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)).error;
}

afterEach(async () => {
  await server?.close();
  seen = [];
});

describe("bytes that are not a well-formed request", () => {
  it.each([
    [
      "a content-length with a transfer-encoding",
      "POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "two content-lengths",
      "POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nContent-Length: 4\r\n\r\n{}{}",
    ],
    ["a bare line feed in a header", "POST /v1/x HTTP/1.1\r\nhost: a\nx: y\r\n\r\n"],
    ["a space before the colon", "POST /v1/x HTTP/1.1\r\nhost: a\r\nauthorization : b\r\n\r\n"],
    ["a folded header", "POST /v1/x HTTP/1.1\r\nhost: a\r\nx: y\r\n  folded\r\n\r\n"],
    ["a chunk size that is not a number", chunked("zz\r\n{}\r\n0\r\n\r\n")],
    ["text that is not HTTP", "hello\r\n\r\n"],
  ])("answers %s with 400 and an error body, and calls no handler (S29)", async (_name, bytes) => {
    const answer = await sendBytes(bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/connection: close/);
    expect(errorOf(answer)).toEqual({
      message: "The bytes received are not an HTTP request.",
      type: "invalid_request_error",
      param: null,
      code: "invalid_request",
    });
    expect(seen).toEqual([]);
  });

  it("answers a request without a host with 400", async () => {
    expect(await sendBytes("POST /v1/x HTTP/1.1\r\ncontent-length: 0\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(seen).toEqual([]);
  });

  it("answers more header bytes than the limit with 431", async () => {
    const answer = await sendBytes(post("{}", "/v1/x", `x-long: ${"a".repeat(2_048)}\r\n`), {
      limits: { headerBytes: 2_048 },
    });
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(errorOf(answer)).toMatchObject({ code: "headers_too_large" });
    expect(seen).toEqual([]);
  });

  it.each([1, 2, 40])("answers %i header lines above the limit with 431", async (above) => {
    // A proxy appends the last line. It must not get lost because the client sent many others.
    const lines = Array.from({ length: 20 + above }, (_, at) => `x-${at}: y\r\n`).join("");
    const bytes = `POST /v1/x HTTP/1.1\r\nhost: a\r\n${lines}content-length: 0\r\n\r\n`;
    const answer = await sendBytes(bytes, { limits: { headerCount: 22 } });
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toMatch(/connection: close/i);
    expect(answer).toContain('"code":"headers_too_large"');
    expect(seen).toEqual([]);
  });

  it.each([2 ** 30 - 2, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER])(
    "accepts a limit of %i header lines",
    async (headerCount) => {
      const bytes = "GET /v1/x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
      expect(await sendBytes(bytes, { limits: { headerCount } })).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it("reads as many header lines as the limit", async () => {
    const lines = Array.from({ length: 19 }, (_, at) => `x-${at}: y\r\n`).join("");
    const bytes = `POST /v1/x HTTP/1.1\r\n${lines}content-length: 0\r\nhost: a\r\nconnection: close\r\n\r\n`;
    expect(await sendBytes(bytes, { limits: { headerCount: 22 } })).toMatch(/^HTTP\/1\.1 200 /);
    expect(seen).toEqual(["POST http://a/v1/x "]);
  });

  it("answers headers that trickle in with 408 (S40)", async () => {
    const answer = await sendBytes("POST /v1/x HTTP/1.1\r\nhost: a\r\nx-slow: ", {
      limits: { headersTimeout: 40 },
    });
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(errorOf(answer)).toMatchObject({ code: "request_timeout" });
  });

  it("closes a connection on which nothing arrived, without an answer (S40)", async () => {
    server = await serve(echo, { port: 0, limits: { headersTimeout: 40 } });
    const client = await rawClient(server.url);
    expect(await client.closed()).toBe("");
  });

  it("answers a body that trickles in with 408 and tells the handler (S40)", async () => {
    const failure = Promise.withResolvers<unknown>();
    const reading: FetchHandler = {
      async fetch(request) {
        await request.text().catch(failure.resolve);
        return new Response("late");
      },
    };
    server = await serve(reading, { port: 0, limits: { headersTimeout: 40, requestTimeout: 40 } });
    const client = await rawClient(server.url);
    client.write("POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{");
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 408 /);
    expect(await failure.promise).toBeInstanceOf(Error);
  });
});

describe("targets", () => {
  it.each([
    ["http://elsewhere.test/v1/models?x=1", "http://elsewhere.test/v1/models?x=1"],
    ["//elsewhere.test/v1/models", "http://gateway.test//elsewhere.test/v1/models"],
    ["/ai/v1/models;x", "http://gateway.test/ai/v1/models;x"],
    ["/v1/%2e%2e/v1/models", "http://gateway.test/v1/models"],
    ["/v1/models%2fx", "http://gateway.test/v1/models%2fx"],
  ])("passes %s to the gateway as %s", async (target, url) => {
    await sendBytes(post("{}", target, "connection: close\r\n"));
    expect(seen).toEqual([`POST ${url} {}`]);
  });
});

function chunked(body: string): string {
  return `POST /v1/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${body}`;
}
