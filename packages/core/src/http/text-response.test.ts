import { describe, expect, it } from "vitest";
import { TextResponse } from "./text-response.ts";

const text = '{"name":"Zoë 🜁"}';
const init = { status: 201, headers: { "content-type": "application/json", "x-request-id": "1" } };
const lazy = () => new TextResponse(text, init);
const plain = () => new Response(text, init);

const readings: Readonly<Record<string, (response: Response) => Promise<unknown>>> = {
  text: (response) => response.text(),
  json: (response) => response.json(),
  bytes: async (response) => Array.from(await response.bytes()),
  arrayBuffer: async (response) => Array.from(new Uint8Array(await response.arrayBuffer())),
  blob: async (response) => {
    const blob = await response.blob();
    return [blob.type, await blob.text()];
  },
  stream: async (response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body ?? []) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  },
  clone: async (response) => [await response.clone().text(), await response.text()],
};

describe("a response with a text", () => {
  it("is a Response with the status and the headers", () => {
    const { status, ok, headers } = lazy();
    expect(lazy()).toBeInstanceOf(Response);
    expect({ status, ok, headers: [...headers] }).toEqual({
      status: 201,
      ok: true,
      headers: [...plain().headers],
    });
  });

  for (const [name, read] of Object.entries(readings)) {
    it(`reads like any other Response (${name}), and only once`, async () => {
      const response = lazy();
      const other = plain();
      expect(response.bodyUsed).toBe(false);
      expect(await read(response)).toEqual(await read(other));
      expect(response.bodyUsed).toBe(true);
      expect(other.bodyUsed).toBe(true);
      for (const again of [response.text(), response.json(), response.arrayBuffer()])
        await expect(again).rejects.toThrow(TypeError);
      expect(() => response.clone()).toThrow(TypeError);
    });
  }

  it("rejects text that isn't JSON, like any other Response", async () => {
    await expect(new TextResponse("{", init).json()).rejects.toThrow(SyntaxError);
  });

  it("can be wrapped in another response with its body", async () => {
    const response = lazy();
    response.headers.set("x-added", "yes");
    const wrapped = new Response(response.body, response);
    expect(wrapped.headers.get("x-added")).toBe("yes");
    expect(wrapped.status).toBe(201);
    expect(await wrapped.text()).toBe(text);
  });
});
