import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clients, plainOnly } from "./loops/clients.ts";
import { type Cell, type Matrix, startMatrix } from "./loops/matrix.ts";

let running: Matrix | undefined;
beforeAll(async () => {
  running = await startMatrix();
});
afterAll(() => running?.stop());

const matrix = () => running ?? expect.unreachable("the matrix did not start");

/** Libraries that return the state themselves, with each upstream that they support. */
const givesBack: readonly Omit<Cell, "keepsState">[] = [
  ...(["deepseek", "kimi", "gemini"] as const).flatMap((upstream) => [
    { client: "openai chat", upstream, stream: false },
    { client: "ai 7, @ai-sdk/openai-compatible", upstream, stream: true },
  ]),
  { client: "ai 7, @ai-sdk/anthropic", upstream: "anthropic", stream: false },
  { client: "ai 7, @ai-sdk/anthropic", upstream: "anthropic", stream: true },
];

describe.each(givesBack)("$upstream, asked directly by $client, stream: $stream", (cell) => {
  it("completes a tool loop that returns its state", async () => {
    expect(await matrix().direct({ ...cell, keepsState: true })).toBeNull();
  });

  it("refuses a tool loop without its state", async () => {
    expect(await matrix().direct({ ...cell, keepsState: false })).toMatch(
      /^the upstream refused: messages.1.*(reasoning_content|thought_signature|Expected `thinking`)/,
    );
  });
});

const ways = [
  { stream: false, keepsState: true },
  { stream: true, keepsState: false },
  { stream: false, keepsState: false },
  { stream: true, keepsState: true },
] as const;

const strict = ["deepseek", "gemini", "anthropic"] as const;

/** Each library with two of the upstreams, in two variants. `npm run clients:matrix` runs all of them. */
const throughGateway = Object.keys(clients).flatMap((client, number) =>
  [0, 1].map((at): Cell => {
    const upstream = strict[(number + at) % strict.length] ?? "kimi";
    const way = ways[(number + at) % ways.length] ?? ways[0];
    return { client, upstream, ...way, stream: way.stream && !plainOnly.includes(client) };
  }),
);

describe("through the gateway", () => {
  it.each(throughGateway)(
    "$client keeps one Session of three Turns with $upstream, stream: $stream, state kept: $keepsState",
    async (cell) => {
      expect(await matrix().governed(cell)).toBeNull();
    },
  );
});
