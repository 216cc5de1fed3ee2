import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { anyErrorOf, bodies, type DrivenGateway, drive, endpoints, errorMembers } from "./drive.ts";

const json = { "content-type": "application/json" };

/** The last request to the model, as text. */
const lastRequestOf = ({ provider }: DrivenGateway): string =>
  JSON.stringify([provider.calls.at(-1)?.request, provider.calls.at(-1)?.embedding]);

const send = (
  { call }: DrivenGateway,
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Readonly<Record<string, string>> = json,
): Promise<Response> => call(path, { method: "POST", headers, body, duplex: "half" });

/** How request bodies reach the gateway. */
export function describeBodies(binding: Binding): void {
  describe("the request body", () => {
    it.each(endpoints)("reaches %s as it was sent, whatever its text", async (path) => {
      const driven = await drive(binding);
      const text = 'é 日本 👩‍👩‍👧 \u0000 \\ " </script> \u2028';
      expect((await driven.post(path, bodies[path](text))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain(JSON.stringify(text));
    });

    it.each(endpoints)("may be long, to %s", async (path) => {
      const driven = await drive(binding);
      const text = "a long text. ".repeat(80_000);
      expect((await driven.post(path, bodies[path](text))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain(text);
    });

    it.each(endpoints)("may arrive at %s in chunks, split anywhere", async (path) => {
      const driven = await drive(binding);
      const bytes = new TextEncoder().encode(JSON.stringify(bodies[path]("in pieces: é")));
      const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) =>
        bytes.slice(at * 7, at * 7 + 7),
      );
      expect((await send(driven, path, ReadableStream.from(pieces))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain("in pieces: é");
    });

    it.each(endpoints)(
      "is rejected by %s if it is empty, not JSON, or not an object",
      async (path) => {
        const driven = await drive(binding);
        for (const body of ['{"model":', "", "[]"]) {
          expect((await send(driven, path, body)).status, body).toBe(400);
        }
        expect(driven.provider.calls).toEqual([]);
      },
    );

    it.each(endpoints)(
      "is rejected by %s if it is larger than the gateway allows",
      async (path) => {
        const driven = await drive(binding, {}, { limits: { bodyBytes: 1_000 } });
        const answer = await driven.post(path, bodies[path]("x".repeat(2_000)));
        expect(answer.status).toBe(413);
        const error = await anyErrorOf(answer);
        expect(Object.keys(error)).toEqual(errorMembers[path]);
        expect(Object.values(error)).toContain("request_too_large");
        expect(driven.provider.calls).toEqual([]);
      },
    );

    if (binding.body === "parsed") describeLosses(binding);
    else describeRefusals(binding);
  });
}

const plain = (path: keyof typeof bodies, text?: string): string =>
  JSON.stringify(bodies[path](text));
const twice = (path: keyof typeof bodies): string =>
  plain(path).replace("{", '{"model":"no/such/model",');
const noUtf8 = (path: keyof typeof bodies): Buffer<ArrayBuffer> => {
  const [before = "", after = ""] = plain(path, "@").split("@");
  return Buffer.concat([Buffer.from(before), Buffer.from([0xff, 0xfe]), Buffer.from(after)]);
};
const compressed = (path: keyof typeof bodies): Buffer<ArrayBuffer> =>
  gzipSync(plain(path, "compressed"));

function describeRefusals(binding: Binding): void {
  describe.each([
    ["repeats a member", twice, json, 400],
    ["is not UTF-8", noUtf8, json, 400],
    ["is compressed", compressed, { ...json, "content-encoding": "gzip" }, 415],
  ])("if it %s", (_name, bodyOf, headers, status) => {
    it.each(endpoints)("is rejected by %s", async (path) => {
      const driven = await drive(binding);
      const answer = await send(driven, path, bodyOf(path), headers);
      expect(answer.status).toBe(status);
      await anyErrorOf(answer);
      expect(driven.provider.calls).toEqual([]);
    });
  });
}

function describeLosses(binding: Binding): void {
  describe.each(endpoints)("to %s", (path) => {
    it("loses all but the last of repeated members with the host's parser", async () => {
      const driven = await drive(binding);
      expect((await send(driven, path, twice(path))).status).toBe(200);
      expect(driven.provider.calls).toHaveLength(1);
    });

    it("loses bytes that are not UTF-8 with the host's parser", async () => {
      const driven = await drive(binding);
      expect((await send(driven, path, noUtf8(path))).status).toBe(200);
      expect(lastRequestOf(driven)).toContain("\ufffd\ufffd");
    });

    it("may be decompressed by the host's parser", async () => {
      const driven = await drive(binding);
      const headers = { ...json, "content-encoding": "gzip" };
      expect((await send(driven, path, compressed(path), headers)).status).toBe(200);
      expect(lastRequestOf(driven)).toContain("compressed");
    });
  });
}
