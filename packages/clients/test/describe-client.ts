import { describe, expect, it } from "vitest";
import type { Client, CreateClient } from "./client.ts";
import { limitedUser, model } from "./gateway-options.ts";
import { runGateway } from "./run-gateway.ts";
import type { ActivityRow, StartGateway } from "./served-gateway.ts";
import { scripted, upstreamUsage } from "./upstream.ts";

const redSquare =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/** 12 tokens in at one dollar per million, 3 out at two: in nanodollars. */
const costOfOneCall = 12 * 1_000 + 3 * 2_000;

const oneCall = (keyLabel: string) => ({
  source: "api",
  gateway: "mock",
  provider: "openai",
  model,
  promptTokens: upstreamUsage.prompt_tokens,
  completionTokens: upstreamUsage.completion_tokens,
  totalTokens: 15,
  usageBasis: "reported",
  costNanoUsd: costOfOneCall,
  priceSource: "custom",
  keyLabel,
});

/** The details of an error. Libraries without the message keep the body. */
const said = (error: unknown): string =>
  error instanceof Error && "responseBody" in error
    ? `${error} ${error.responseBody}`
    : String(error);

/** Tests all features of a client library through a running gateway, and the records. */
export function describeClient(name: string, start: StartGateway, createClient: CreateClient) {
  describe(name, () => {
    const running = runGateway(start);

    const clientOf = (apiKey: string, of = model): Client =>
      createClient({ baseURL: running.gateway.baseURL, apiKey, model: of });

    /** A client with its own user and key, so its activity is separate. */
    async function newcomer(user: string) {
      const apiKey = await running.gateway.createKey({ user, label: `${user}'s laptop` });
      return { apiKey, client: clientOf(apiKey), activity: () => running.gateway.activity(user) };
    }

    const expectOneCall = (rows: readonly ActivityRow[], user: string) => {
      expect(rows).toEqual([expect.objectContaining(oneCall(`${user}'s laptop`))]);
      expect(rows[0]?.durationMs).toBeGreaterThanOrEqual(0);
    };

    it("answers a plain call and records it", async () => {
      const { client, activity } = await newcomer("plain");
      const answer = await client.plain("Say hello");
      expect(answer).toEqual({ text: scripted.hello, promptTokens: 12, completionTokens: 3 });
      expectOneCall(await activity(), "plain");
    });

    it("streams the same answer in pieces, with its usage, and records it", async () => {
      const { client, activity } = await newcomer("streamed");
      const deltas: string[] = [];
      const answer = await client.streamed("Say hello", (delta) => deltas.push(delta));
      expect(answer).toEqual({ text: scripted.hello, promptTokens: 12, completionTokens: 3 });
      expect(deltas.length).toBeGreaterThan(1);
      expect(deltas.join("")).toBe(scripted.hello);
      expectOneCall(await activity(), "streamed");
    });

    it("loops over a tool in one Session and one Turn, step by step", async () => {
      const { client, activity } = await newcomer("tools");
      const cities: string[] = [];
      const text = await client.withTool("What is the weather in Paris?", (city) => {
        cities.push(city);
        return "18 degrees";
      });
      expect(text).toBe(scripted.weather);
      expect(cities).toEqual(["Paris"]);
      const rows = [...(await activity())].reverse();
      expect(rows.map((row) => [row.stepNumber, row.toolCalls])).toEqual([
        [0, 1],
        [1, 0],
      ]);
      expect(new Set(rows.map((row) => row.sessionId)).size).toBe(1);
      expect(new Set(rows.map((row) => row.turnId)).size).toBe(1);
    });

    it("returns structured output that matches its schema", async () => {
      const { client, activity } = await newcomer("structured");
      expect(await client.structured("As JSON: the weather")).toEqual(scripted.degrees);
      expect(JSON.stringify(running.upstream.bodies().at(-1))).toContain('"json_schema"');
      expectOneCall(await activity(), "structured");
    });

    it("passes an image on to the provider, byte for byte", async () => {
      const { client, activity } = await newcomer("image");
      expect(await client.aboutImage("What is in this image?", redSquare)).toBe(scripted.image);
      expect(JSON.stringify(running.upstream.bodies().at(-1))).toContain(redSquare);
      expectOneCall(await activity(), "image");
    });

    it("raises its own errors for a wrong key, an unknown model and an exhausted Budget", async () => {
      const { client, apiKey, activity } = await newcomer(limitedUser);
      const failure = (promise: Promise<unknown>) =>
        promise.then(
          () => expect.unreachable("the call must fail"),
          (error: unknown) => error,
        );
      const asked = running.upstream.bodies().length;
      const wrong = await failure(clientOf(`${apiKey.slice(0, -1)}!`).plain("Say hello"));
      expect(client.isStatus(wrong, 401), String(wrong)).toBe(true);
      const unknown = await failure(clientOf(apiKey, "nowhere/openai/mini").plain("Say hello"));
      expect(client.isStatus(unknown, 404), String(unknown)).toBe(true);
      await client.plain("Say hello");
      const exhausted = await failure(client.plain("Say hello"));
      expect(client.isStatus(exhausted, 429), String(exhausted)).toBe(true);
      expect(said(exhausted)).toContain("limited-day");
      expect(running.upstream.bodies()).toHaveLength(asked + 1);
      expectOneCall(await activity(), limitedUser);
    });

    it("raises when the answer breaks off, and never treats it as complete", async () => {
      const { client, activity } = await newcomer("broken");
      const deltas: string[] = [];
      const broken = client.streamed("Break off", (delta) => deltas.push(delta));
      await expect(broken).rejects.toThrow();
      expect(deltas.join("").length).toBeGreaterThan(0);
      expect(await activity()).toEqual([]);
    });

    it("hides a failing upstream's error text", async () => {
      const { client, activity } = await newcomer("hidden");
      running.upstream.failNext(400);
      const error: unknown = await client.plain("Say hello").catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(`${error} ${JSON.stringify(error)}`).not.toContain("upstream secret");
      expect(await activity()).toEqual([]);
    });
  });
}
