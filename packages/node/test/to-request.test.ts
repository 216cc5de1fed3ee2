import { once } from "node:events";
import {
  createServer,
  IncomingMessage,
  type RequestOptions,
  request,
  type Server,
  ServerResponse,
} from "node:http";
import { type AddressInfo, Socket } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type NodeRequest, send, toRequest } from "../src/index.ts";

let server: Server | undefined;
afterEach(() => server?.close());

/** Lets `prepare` change each request, as a framework would, and answers with the request that the gateway sees. */
async function bridged(
  prepare: (incoming: IncomingMessage) => Promise<object>,
  init: RequestInit & { readonly path?: string; readonly asWeb?: boolean },
): Promise<Record<string, unknown>> {
  server = createServer(async (incoming, outgoing) => {
    const bridged = toRequest(Object.assign(incoming, await prepare(incoming)), outgoing);
    const request = init.asWeb ? bridged.toWeb() : bridged;
    const { pathname, search } = new URL(request.url, "http://localhost");
    const seen = {
      target: pathname + search,
      encoding: request.headers.get("content-encoding"),
      length: request.headers.get("content-length"),
      dataClass: request.headers.get("x-service-data-sensitivity"),
      text: Buffer.from(await bytesOf(request)).toString(),
      used: request.bodyUsed,
      again: await bytesOf(request).then(
        () => "read twice",
        () => "refused",
      ),
    };
    await send(outgoing, Response.json(seen));
  });
  const port = await listen(server);
  const answer = await fetch(`http://127.0.0.1:${port}${init.path ?? "/"}`, init);
  return (await answer.json()) as Record<string, unknown>;
}

function bytesOf(request: NodeRequest | Request): Promise<Uint8Array> {
  return "readBody" in request
    ? new Promise((resolve, reject) => request.readBody(resolve, reject))
    : request.bytes();
}

async function listen(listening: Server): Promise<number> {
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  return (listening.address() as AddressInfo).port;
}

async function drain(incoming: IncomingMessage): Promise<void> {
  for await (const _ of incoming);
}

describe.each([
  ["what the gateway reads", { asWeb: false }],
  ["the web request", { asWeb: true }],
])("%s of a Node request", (_, form) => {
  it("has the original URL even if the framework removed a mount prefix", async () => {
    const seen = await bridged(
      async (incoming) => {
        const originalUrl = incoming.url;
        incoming.url = "/v1/models";
        return { originalUrl };
      },
      { ...form, path: "/ai/v1/models?limit=1" },
    );
    expect(seen).toMatchObject({ target: "/ai/v1/models?limit=1" });
  });

  it("streams an unread body from the socket", async () => {
    const seen = await bridged(async () => ({}), { ...form, method: "POST", body: '{"a":"é"}' });
    expect(seen).toMatchObject({ text: '{"a":"é"}', length: "10" });
  });

  it("gives the body once", async () => {
    const seen = await bridged(async () => ({}), {
      ...form,
      method: "POST",
      body: "x".repeat(300_000),
    });
    expect(seen).toMatchObject({ text: "x".repeat(300_000), used: true, again: "refused" });
  });

  it("has no body if the method allows none", async () => {
    expect(await bridged(async () => ({}), form)).toMatchObject({ text: "" });
  });

  it("prefers the raw body to the parsed one", async () => {
    const seen = await bridged(
      async (incoming) => {
        await drain(incoming);
        return { rawBody: Buffer.from('{ "raw": 1 }'), body: { raw: 1 } };
      },
      { ...form, method: "POST", body: "ignored" },
    );
    expect(seen).toMatchObject({ text: '{ "raw": 1 }' });
  });

  it("serializes a parsed body again, without its original encoding and length", async () => {
    const seen = await bridged(
      async (incoming) => {
        await drain(incoming);
        return { body: { model: "a/b/c" } };
      },
      {
        ...form,
        method: "POST",
        body: gzipSync('{"model":"a/b/c"}'),
        headers: { "content-encoding": "gzip", "content-type": "application/json" },
      },
    );
    expect(seen).toMatchObject({ text: '{"model":"a/b/c"}', encoding: null });
  });

  it("streams a body that the framework paused", async () => {
    const seen = await bridged(async (incoming) => incoming.pause(), {
      ...form,
      method: "POST",
      body: '{"a":1}',
    });
    expect(seen).toMatchObject({ text: '{"a":1}' });
  });

  it.each(["utf8", "latin1"] as const)(
    "keeps the bytes of a body that the framework reads as %s text",
    async (encoding) => {
      const seen = await bridged(async (incoming) => incoming.setEncoding(encoding), {
        ...form,
        method: "POST",
        body: '{"a":"é1"}',
      });
      expect(seen).toMatchObject({ text: '{"a":"é1"}' });
    },
  );

  it("ignores the empty body of a parser that did not run", async () => {
    const seen = await bridged(async () => ({ body: {} }), {
      ...form,
      method: "POST",
      body: '{"a":1}',
    });
    expect(seen).toMatchObject({ text: '{"a":1}' });
  });

  it("joins a repeated header into one list, so neither value hides the other", async () => {
    const headers = new Headers();
    headers.append("x-service-data-sensitivity", "D2_CONFIDENTIAL");
    headers.append("x-service-data-sensitivity", "D0_PUBLIC");
    const seen = await bridged(async () => ({}), { ...form, method: "POST", body: "{}", headers });
    expect(seen).toMatchObject({ dataClass: "D2_CONFIDENTIAL, D0_PUBLIC" });
  });

  it.each([
    ["gateway.example:8443", "http://gateway.example:8443"],
    ["[::1]:80", "http://[::1]"],
    ["user@gateway.example", "http://localhost"],
    ["gateway.example/v1", "http://localhost"],
    ["a b", "http://localhost"],
    ["256.256.256.256", "http://localhost"],
    ["gateway.example:65536", "http://localhost"],
    ["[::::]", "http://localhost"],
  ])("that names the host %s has the origin %s", async (host, origin) => {
    expect(await urlSeen(form, { headers: { host } })).toBe(`${origin}/`);
  });

  it.each([
    ["http://other.example/v1/models?x", "http://other.example/v1/models?x"],
    ["http://user:password@other.example/v1/models", "http://other.example/v1/models"],
    ["http://256.256.256.256/v1/models", "http://gateway.example/"],
    ["//other.example/v1/models", "http://gateway.example//other.example/v1/models"],
    ["*", "http://gateway.example/"],
  ])("that is sent to %s has the URL %s", async (path, url) => {
    expect(await urlSeen(form, { path, headers: { host: "gateway.example" } })).toBe(url);
  });
});

it("replaces a target that is not a valid URL with /", async () => {
  server = createServer((incoming, outgoing) => outgoing.end(toRequest(incoming, outgoing).url));
  const asked = request({
    port: await listen(server),
    host: "127.0.0.1",
    path: "http://256.256.256.256/v1/models",
  }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  expect(await text(answer)).toBe("/");
});

it("joins the small pieces of a body as they arrive", async () => {
  const incoming = new IncomingMessage(new Socket());
  incoming.method = "POST";
  const bytes = Buffer.from(" ".repeat(4_000));
  const payload = Readable.from(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  const concat = vi.spyOn(Buffer, "concat");
  const read = await bytesOf(toRequest(incoming, new ServerResponse(incoming), payload));
  const pieces = concat.mock.calls.map(([joined]) => joined.length);
  concat.mockRestore();
  expect(read).toHaveLength(bytes.length);
  expect(Math.max(...pieces)).toBeLessThan(300);
});

/** The URL of the `Request` that a handler, or the host's `authenticate`, gets. */
async function urlSeen(form: { readonly asWeb: boolean }, sent: RequestOptions): Promise<string> {
  server = createServer((incoming, outgoing) => {
    const request = toRequest(incoming, outgoing);
    outgoing.end((form.asWeb ? request.toWeb() : request.toHead()).url);
  });
  const port = await listen(server);
  const asked = request({ ...sent, method: "OPTIONS", port, host: "127.0.0.1" }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return text(answer);
}

it("counts headers as too large if Node may have dropped some of them", () => {
  const incoming = new IncomingMessage(new Socket());
  const headerBytes = (lines: number): number => {
    incoming.rawHeaders = Array.from({ length: 2 * lines }, () => "x");
    return toRequest(incoming, new ServerResponse(incoming)).headerBytes;
  };
  expect(headerBytes(1_999)).toBe(1_999 * 6);
  expect(headerBytes(2_000)).toBe(Number.POSITIVE_INFINITY);
});
