import { scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openaiCompatible } from "../src/index.ts";
import { chunked, head } from "./drive.ts";

type Script = Parameters<typeof scriptedUpstream>[0];

/** The models of a provider with `listModels`, and its upstream. */
async function listed(script: Script) {
  const upstream = await scriptedUpstream(script);
  const baseURL = `${upstream.url}/v1`;
  const provider = openaiCompatible({ baseURL, apiKey: "sk-platform", listModels: true });
  onTestFinished(async () => {
    await provider.close();
    await upstream.close();
  });
  const names = await provider.listModels?.(new AbortController().signal).catch((error) => error);
  return { names, upstream };
}

function answer(body: string, status = 200): string {
  const head = `HTTP/1.1 ${status} Answer\r\ncontent-type: application/json`;
  return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

describe("the upstream's own list of models", () => {
  it("is requested with the platform's credential and read by id", async () => {
    const list = { object: "list", data: [{ id: "gpt-5" }, { id: 1 }, null, {}, { id: "a/b" }] };
    const { names, upstream } = await listed(({ send }) => send(answer(JSON.stringify(list))));
    expect(names).toEqual(["gpt-5", "a/b"]);
    expect(upstream.requests[0]?.head).toMatch(/^GET \/v1\/models HTTP\/1.1/);
    expect(upstream.requests[0]?.head).toMatch(/^authorization: Bearer sk-platform$/im);
  });

  it("may arrive in single bytes, which are joined as they arrive", async () => {
    const list = JSON.stringify({ data: [{ id: "x".repeat(4_000) }] });
    const bytes = [...list, ""].map(chunked).join("");
    const concat = vi.spyOn(Buffer, "concat");
    onTestFinished(() => concat.mockRestore());
    const { names } = await listed(({ send }) =>
      send(head("content-type: application/json", "transfer-encoding: chunked") + bytes),
    );
    expect(names).toHaveLength(1);
    expect(Math.max(...concat.mock.calls.map(([pieces]) => pieces.length))).toBeLessThan(300);
  });

  it.each([
    ["a failure", answer("{}", 500), "no_model_list"],
    ["a redirect", answer("{}", 302), "no_model_list"],
    ["text that is not JSON", answer("<html>"), "invalid_json"],
    ["more than 4 MiB", answer(`{"data":["${"x".repeat(4_194_304)}"]}`), "answer_too_large"],
  ])("fails on %s", async (_, bytes, reason) => {
    const { names } = await listed(({ send }) => send(bytes));
    expect(names).toMatchObject({ name: "ProviderError", reason });
  });

  it("is requested only if enabled, and never on a customer-owned connection", () => {
    const baseURL = "https://api.example.com/v1";
    expect(openaiCompatible({ baseURL, apiKey: null }).listModels).toBeUndefined();
    const { problems } = openaiCompatible({ baseURL, connection: "customer", listModels: true });
    expect(problems).toEqual([expect.stringContaining("`listModels` requires the platform's")]);
  });
});
