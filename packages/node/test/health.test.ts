import { afterEach, expect, it } from "vitest";
import { type AnswerHandler, type Readiness, type RunningServer, serve } from "../src/index.ts";

let server: RunningServer | undefined;
afterEach(() => server?.close());

const handler: AnswerHandler = {
  answer: async ({ method, url }) => ({ status: 404, headers: {}, body: `${method} ${url}` }),
};

async function check(method: string, path: string): Promise<readonly [number, string]> {
  const answer = await fetch(`${server?.url}${path}`, { method });
  return [answer.status, await answer.text()];
}

it("answers checks of health itself, and passes everything else on", async () => {
  let said: Readiness = { ready: true, reasons: [] };
  server = await serve(handler, { port: 0, health: async () => said });
  expect(await check("GET", "/healthz")).toEqual([200, '{"reasons":[],"degraded":[]}']);
  expect(await check("GET", "/readyz")).toEqual([200, '{"reasons":[],"degraded":[]}']);
  expect(await check("HEAD", "/readyz")).toEqual([200, ""]);
  said = { ready: true, reasons: [], degraded: ["sealing"] };
  expect(await check("GET", "/readyz")).toEqual([200, '{"reasons":[],"degraded":["sealing"]}']);
  said = { ready: false, reasons: ["store"] };
  expect(await check("GET", "/readyz")).toEqual([503, '{"reasons":["store"],"degraded":[]}']);
  expect(await check("GET", "/healthz")).toEqual([200, '{"reasons":[],"degraded":[]}']);
  for (const [method, path] of [
    ["GET", "/"],
    ["POST", "/readyz"],
    ["GET", "/v1/healthz"],
  ] as const)
    expect(await check(method, path)).toEqual([404, `${method} ${path}`]);
});

it("is not ready if its check fails", async () => {
  server = await serve(handler, { port: 0, health: () => Promise.reject(new Error("secret")) });
  expect(await check("GET", "/readyz")).toEqual([503, '{"reasons":["unknown"],"degraded":[]}']);
});

it("leaves these paths to a handler that has no check", async () => {
  server = await serve(handler, { port: 0 });
  expect(await check("GET", "/healthz")).toEqual([404, "GET /healthz"]);
  expect((await check("HEAD", "/readyz"))[0]).toBe(404);
});

it("is no longer ready as it closes, but admits requests until the delay is over", async () => {
  const bounds: unknown[] = [];
  server = await serve(handler, {
    port: 0,
    health: async () => ({ ready: true, reasons: [] }),
    close: async (bound) => void bounds.push(bound),
    drainDelay: 60_000,
  });
  const closed = server.close({ within: 60_000 });
  expect(await check("GET", "/readyz")).toEqual([503, '{"reasons":["closing"],"degraded":[]}']);
  expect(await check("GET", "/healthz")).toEqual([200, '{"reasons":[],"degraded":[]}']);
  expect(await check("GET", "/v1/models")).toEqual([404, "GET /v1/models"]);
  expect(bounds).toEqual([]);
  void server.close({ within: 1_000 });
  await closed;
  expect(bounds).toHaveLength(1);
  await expect(fetch(server.url)).rejects.toThrow();
});

it("stops admitting when the delay is over, with the rest of the time to close", async () => {
  const bounds: { readonly within: number }[] = [];
  server = await serve(handler, {
    port: 0,
    close: async (bound) => void bounds.push(bound),
    drainDelay: 20,
  });
  await server.close({ within: 5_000 });
  expect(bounds[0]?.within).toBeGreaterThan(1_000);
  expect(bounds[0]?.within).toBeLessThanOrEqual(4_990);
});
