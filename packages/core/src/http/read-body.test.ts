import { describe, expect, it, vi } from "vitest";
import { defaultLimits } from "../domain/limits.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { parseBody, readBody } from "./read-body.ts";

const limits = { ...defaultLimits, bodyBytes: 1_000, imageBodyBytes: 5_000 };

async function readJson(request: Request, within: typeof limits): Promise<object> {
  return parseBody(await readBody(request, { limits: within }, { admit() {}, grow() {} }), within);
}

interface Body {
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream | null;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

function post({ body = "{}", headers = {}, signal }: Body): Request {
  return new Request("http://gateway/v1/chat/completions", {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
    duplex: "half",
    ...(signal === undefined ? {} : { signal }),
  });
}

async function refusal(request: Request): Promise<{ code: string; param: string | null }> {
  const error = await readJson(request, limits).catch((thrown: unknown) => thrown);
  if (!(error instanceof GatewayError)) throw new Error("the body was accepted", { cause: error });
  return { code: error.code, param: error.param };
}

function stream(...chunks: readonly string[]): ReadableStream<Uint8Array> {
  return ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));
}

describe("the content type and encoding of a body", () => {
  it.each([
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/json ; profile=x ; charset=utf8",
    "application/json;",
  ])("accepts %j", async (type) => {
    const request = post({ body: '{"a":1}', headers: { "content-type": type } });
    expect(await readJson(request, limits)).toEqual({ a: 1 });
  });

  it.each([
    "application/json\ta",
    "application/json a",
    "application/jsonx",
    "application/json, application/json",
    "application/json; charset=latin1",
    "application/json; charset=utf-16",
    "text/plain",
    "text/json",
    "multipart/form-data; boundary=application/json",
  ])("rejects %j", async (type) => {
    const request = post({ headers: { "content-type": type } });
    expect(await refusal(request)).toEqual({ code: "unsupported_media_type", param: null });
  });

  it("rejects a missing content type", async () => {
    const request = post({});
    request.headers.delete("content-type");
    expect(await refusal(request)).toMatchObject({ code: "unsupported_media_type" });
  });

  it.each(["gzip", "br", "deflate", "zstd", "gzip, identity"])("rejects %j", async (encoding) => {
    const request = post({ headers: { "content-encoding": encoding } });
    expect(await refusal(request)).toMatchObject({ code: "unsupported_media_type" });
  });

  it("accepts content-encoding identity", async () => {
    expect(await readJson(post({ headers: { "content-encoding": "Identity" } }), limits)).toEqual(
      {},
    );
  });
});

describe("the size of a body", () => {
  const fill = (bytes: number): string => JSON.stringify({ a: "x".repeat(bytes - 8) });
  const image = (bytes: number): string => `data:image\\/png;base64,${"A".repeat(bytes)}`;

  it("accepts a body of exactly the limit, with or without a content-length", async () => {
    await readJson(post({ body: fill(1_000) }), limits);
    await readJson(post({ body: fill(1_000), headers: { "content-length": "1000" } }), limits);
    expect(await refusal(post({ body: fill(1_001) }))).toMatchObject({ code: "request_too_large" });
  });

  it("rejects a content-length over the limit before reading anything", async () => {
    let pulled = false;
    const body = new ReadableStream(
      {
        pull: () => {
          pulled = true;
        },
      },
      { highWaterMark: 0 },
    );
    const request = post({ body, headers: { "content-length": "5001" } });
    expect(await refusal(request)).toMatchObject({ code: "request_too_large" });
    expect(pulled).toBe(false);
  });

  it("counts a body as it arrives, and stops an endless upload", async () => {
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(600).fill(0x20)),
      cancel: () => {
        cancelled = true;
      },
    });
    expect(await refusal(post({ body }))).toMatchObject({ code: "request_too_large" });
    expect(cancelled).toBe(true);
  });

  it("counts a body whose content-length is wrong", async () => {
    const request = post({ body: `{"a":"${image(5_000)}"}`, headers: { "content-length": "10" } });
    expect(await refusal(request)).toMatchObject({ code: "request_too_large" });
  });

  it("allows only image data beyond the limit of a plain body", async () => {
    const withImage = `{"a":"${image(3_000)}","b":"${"x".repeat(900)}"}`;
    expect(await readJson(post({ body: withImage }), limits)).toHaveProperty("b");
    const tooMuchText = `{"a":"${image(1_000)}","b":"${"x".repeat(1_100)}"}`;
    expect(await refusal(post({ body: tooMuchText }))).toMatchObject({ code: "request_too_large" });
    const tooMuchImage = `{"a":"${image(5_000)}"}`;
    expect(await refusal(post({ body: tooMuchImage }))).toMatchObject({
      code: "request_too_large",
    });
  });
});

describe("the content of a body", () => {
  it.each([
    ["empty", ""],
    ["malformed", '{"a":'],
    ["with a trailing comma", '{"a":1,}'],
    ["two values", "{}{}"],
    ["an array", "[]"],
    ["null", "null"],
    ["a string", '"text"'],
    ["a number", "1"],
    ["white space", "  "],
    ["invalid UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["an overlong form", new Uint8Array([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d])],
    [
      "an encoded surrogate",
      new Uint8Array([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
    ],
  ])("rejects a body that is %s", async (_name, body) => {
    expect(await refusal(post({ body }))).toEqual({ code: "invalid_json", param: null });
  });

  it("rejects a missing body", async () => {
    expect(await refusal(post({ body: null }))).toEqual({ code: "invalid_json", param: null });
  });

  it("names the path of a fault", async () => {
    const cases = [
      ['{"a":{"b":1,"b":2}}', "a.b"],
      ['{"a":[{"__proto__":1}]}', "a[0].__proto__"],
      ['{"seed":9007199254740993}', "seed"],
      ['{"a":["\\ud800"]}', "a[0]"],
    ] as const;
    for (const [body, place] of cases) {
      const error = await readJson(post({ body }), limits).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "invalid_json", param: null });
      expect(String(error)).toContain(`(at ${place})`);
    }
  });

  it("doesn't quote the body in its message", async () => {
    const secret = "hunter2";
    const error = await readJson(post({ body: `{"a": ${secret}}` }), limits).catch(String);
    expect(error).not.toContain(secret);
    expect(error).toContain("not valid JSON");
  });

  it("keeps the digits in JSON that a model wrote, in a body of any size", async () => {
    const wide = { ...defaultLimits };
    const input = '{"id":12345678901234567890,"__proto__":-1e999,"\u{10000}":["\u{10000}1"]}';
    for (const padding of ["", "x".repeat(100_000)]) {
      const body = `{"messages":[{"input":${input}}],"padding":"${padding}"}`;
      expect(JSON.stringify(await readJson(post({ body }), wide))).toBe(body);
    }
  });

  it.each(["012345678901234567890", "12345678901234567890.", "--1234567890", "1e400e5", "1e999,"])(
    "rejects the number %s in JSON that a model wrote",
    async (number) => {
      const body = `{"messages":[{"input":{"id":${number}}}]}`;
      expect((await refusal(post({ body }))).code).toBe("invalid_json");
    },
  );

  it("leaves Object.prototype unchanged (S32)", async () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const body = '{"tool":{"parameters":{"__proto__":{"isAdmin":true}}}}';
    expect(await readJson(post({ body }), limits)).not.toHaveProperty("isAdmin");
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  });

  it("reads a body in pieces that split a character", async () => {
    const bytes = new TextEncoder().encode('{"a":"é😀"}');
    for (let cut = 1; cut < bytes.length; cut++) {
      const body = ReadableStream.from([bytes.slice(0, cut), bytes.slice(cut)]);
      expect(await readJson(post({ body }), limits)).toEqual({ a: "é😀" });
    }
  });
});

it("joins the small pieces of a body without a length as they arrive", async () => {
  const bytes = Buffer.from(`{"a":"${"x".repeat(4_000)}"}`);
  const body = ReadableStream.from(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  const concat = vi.spyOn(Buffer, "concat");
  const within = { ...limits, bodyBytes: 5_000 };
  expect(await readJson(post({ body }), within)).toHaveProperty("a");
  const pieces = concat.mock.calls.map(([joined]) => joined.length);
  concat.mockRestore();
  expect(Math.max(...pieces)).toBeLessThan(300);
});

describe("a body whose upload ends early", () => {
  it("is rejected if its stream fails", async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) });
    expect(await refusal(post({ body }))).toEqual({ code: "invalid_json", param: null });
  });

  it("stops being read after an abort", async () => {
    for (const headers of [{}, { "content-length": "10" }]) {
      const client = new AbortController();
      const body = new ReadableStream<Uint8Array>();
      const request = post({ body, headers: { ...headers }, signal: client.signal });
      const refused = refusal(request);
      client.abort();
      expect(await refused).toEqual({ code: "invalid_json", param: null });
    }
  });

  it("gets an error that names the host's mistake if the host read it first", async () => {
    const request = post({});
    await request.text();
    expect(await refusal(request)).toMatchObject({ code: "invalid_json" });
  });

  it("is read to its end if it is a stream of chunks", async () => {
    expect(await readJson(post({ body: stream('{"a"', ":", "1}") }), limits)).toEqual({ a: 1 });
  });
});
