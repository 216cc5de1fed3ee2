import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningExample, runServer, startExample } from "./run-example.ts";

/** Tests of every example that serves a gateway at `/ai`. They start it with `npm start`. */
export function describeServer(name: string, folder: string): void {
  describe(`the example ${name}`, () => {
    let example: RunningExample;
    beforeAll(async () => {
      example = await runServer(folder);
    }, 30_000);
    afterAll(() => example.stop());

    const ask = (fields: object = {}, secret = example.secret) =>
      fetch(`${example.url}/ai/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "sim/tollgate/echo",
          messages: [{ role: "user", content: "Hello" }],
          ...fields,
        }),
      });

    it("answers below its mount, plain and streamed, and shows its spend", async () => {
      expect(await (await ask()).text()).toContain("You said: Hello");
      const stream = await (await ask({ stream: true })).text();
      expect(stream.split("\n\n").length).toBeGreaterThan(4);
      expect(stream).toContain("data: [DONE]");
      const spend: unknown = await (await fetch(`${example.url}/spend`)).json();
      const call = { model: "sim/tollgate/echo", keyLabel: "laptop" };
      expect(spend).toEqual([expect.objectContaining(call), expect.objectContaining(call)]);
    });

    it("rejects a wrong key and a forbidden model", async () => {
      expect((await ask({}, "tg_wrong")).status).toBe(401);
      expect((await ask({ model: "sim/tollgate/echo-preview" })).status).toBe(403);
    });

    it("exits with an error if its port is taken", async () => {
      const second = startExample(folder, Number(new URL(example.url).port), "pipe");
      let errors = "";
      second.stderr?.on("data", (chunk) => (errors += String(chunk)));
      expect(await once(second, "close")).toEqual([1, null]);
      expect(errors).toContain("EADDRINUSE");
    }, 20_000);

    it("stops on request, after the open stream has ended", async () => {
      const answer = await ask({ stream: true });
      const stopped = example.stop();
      expect(await answer.text()).toContain("data: [DONE]");
      expect(await stopped).toBe(0);
    }, 20_000);
  });
}
