import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clients, plainOnly } from "./loops/clients.ts";
import { type Cell, type Matrix, startMatrix } from "./loops/matrix.ts";

let running: Matrix | undefined;
beforeAll(async () => {
  running = await startMatrix();
});
afterAll(() => running?.stop());

const matrix = () => running ?? expect.unreachable("the matrix did not start");

/** Libraries that give the state back by themselves, with each upstream that they do it for. */
const givesBack: readonly Omit<Cell, "keepsState">[] = [
  ...(["deepseek", "kimi", "gemini"] as const).flatMap((upstream) => [
    { client: "openai chat", upstream, stream: false },
    { client: "ai 7, @ai-sdk/openai-compatible", upstream, stream: true },
  ]),
  { client: "ai 7, @ai-sdk/anthropic", upstream: "anthropic", stream: false },
  { client: "ai 7, @ai-sdk/anthropic", upstream: "anthropic", stream: true },
];

describe.each(givesBack)("$upstream, asked directly by $client, stream: $stream", (cell) => {
  it("completes a tool loop that gives its state back", async () => {
    expect(await matrix().direct({ ...cell, keepsState: true })).toBeNull();
  });

  it("refuses a tool loop without its state", async () => {
    expect(await matrix().direct({ ...cell, keepsState: false })).toMatch(
      /^the upstream refused: messages.1.*(reasoning_content|thought_signature|Expected `thinking`)/,
    );
  });
});

describe.each(Object.keys(clients).filter((name) => !plainOnly.includes(name)))(
  "%s, through the gateway",
  (client) => {
    it.each([
      { stream: false, keepsState: true },
      { stream: true, keepsState: false },
    ])("holds one Session of three Turns, stream: $stream", async (way) => {
      expect(await matrix().governed({ client, upstream: "stateless", ...way })).toBeNull();
    });
  },
);
