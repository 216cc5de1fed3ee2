import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { bodies, chatPath, type DrivenGateway, drive, endpoints, errorOf } from "./drive.ts";

const json = { "content-type": "application/json" };

/** The last request to the model, as text. */
const lastRequestOf = ({ provider }: DrivenGateway): string =>
  JSON.stringify(provider.calls.at(-1)?.request);

const send = (
  { call }: DrivenGateway,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Readonly<Record<string, string>> = json,
): Promise<Response> => call(chatPath, { method: "POST", headers, body, duplex: "half" });

/** How request bodies reach the gateway. */
export function describeBodies(binding: Binding): void {
  describe("the request body", () => {
    it.each(endpoints)("reaches %s as it was sent, whatever its text", async (path) => {
      const driven = await drive(binding);
      const text = 'é 日本 👩‍👩‍👧 \u0000 \\ " </script> \u2028';
      expect((await driven.post(path, bodies[path](text))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain(JSON.stringify(text));
    });

    it("may be long", async () => {
      const driven = await drive(binding);
      const text = "a long text. ".repeat(80_000);
      expect((await driven.post(chatPath, bodies[chatPath](text))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain(text);
    });

    it("may arrive in chunks, split anywhere", async () => {
      const driven = await drive(binding);
      const bytes = new TextEncoder().encode(JSON.stringify(bodies[chatPath]("in pieces: é")));
      const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) =>
        bytes.slice(at * 7, at * 7 + 7),
      );
      expect((await send(driven, ReadableStream.from(pieces))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain("in pieces: é");
    });

    it("is rejected if it is empty, not JSON, or not an object", async () => {
      const driven = await drive(binding);
      for (const body of ['{"model":', "", "[]"]) {
        expect((await send(driven, body)).status, body).toBe(400);
      }
      expect(driven.provider.calls).toEqual([]);
    });

    it("is rejected if it is larger than the gateway allows", async () => {
      const driven = await drive(binding, {}, { limits: { bodyBytes: 1_000 } });
      const answer = await driven.post(chatPath, bodies[chatPath]("x".repeat(2_000)));
      expect(answer.status).toBe(413);
      expect(await errorOf(answer)).toMatchObject({ code: "request_too_large" });
      expect(driven.provider.calls).toEqual([]);
    });

    if (binding.body === "parsed") describeLosses(binding);
    else describeRefusals(binding);
  });
}

const twice =
  '{"messages":[{"role":"user","content":"Hello"}],"model":"no/such/model","model":"test/tollgate/scripted"}';
const noUtf8 = Buffer.concat([
  Buffer.from('{"model":"test/tollgate/scripted","messages":[{"role":"user","content":"'),
  Buffer.from([0xff, 0xfe]),
  Buffer.from('"}]}'),
]);
const compressed = gzipSync(JSON.stringify(bodies[chatPath]("compressed")));

function describeRefusals(binding: Binding): void {
  it.each([
    ["repeats a member", twice, json, 400],
    ["is not UTF-8", noUtf8, json, 400],
    ["is compressed", compressed, { ...json, "content-encoding": "gzip" }, 415],
  ])("is rejected if it %s", async (_name, body, headers, status) => {
    const driven = await drive(binding);
    const answer = await send(driven, body, headers);
    expect(answer.status).toBe(status);
    await errorOf(answer);
    expect(driven.provider.calls).toEqual([]);
  });
}

function describeLosses(binding: Binding): void {
  it("loses all but the last of repeated members with the host's parser", async () => {
    const driven = await drive(binding);
    expect((await send(driven, twice)).status).toBe(200);
    expect(driven.provider.calls).toHaveLength(1);
  });

  it("loses bytes that are not UTF-8 with the host's parser", async () => {
    const driven = await drive(binding);
    expect((await send(driven, noUtf8)).status).toBe(200);
    expect(lastRequestOf(driven)).toContain("\ufffd\ufffd");
  });

  it("may be decompressed by the host's parser", async () => {
    const driven = await drive(binding);
    const headers = { ...json, "content-encoding": "gzip" };
    expect((await send(driven, compressed, headers)).status).toBe(200);
    expect(lastRequestOf(driven)).toContain("compressed");
  });
}
