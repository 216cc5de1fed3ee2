import { describe, expect, it } from "vitest";
import { serve, toNodeHandler } from "../src/index.ts";

const handler = { fetch: async () => new Response() };

describe("the options of the server", () => {
  it.each([
    [{ port: -1 }, "port"],
    [{ port: "8787" }, "port"],
    [{ port: 65_536 }, "port"],
    [{ host: 7 }, "host"],
    [{ limits: 100 }, "limits"],
    [{ limits: { writestall: 1 } }, "limits.writestall"],
    [{ limits: { connections: 0 } }, "limits.connections"],
    [{ limits: { headersTimeout: 9, requestTimeout: 8 } }, "limits.headersTimeout"],
    [{ limits: { headersTimeout: 120_001 } }, "limits.headersTimeout"],
    [{ close: true }, "close"],
    [{ prot: 1 }, "prot"],
  ])("are refused when they are %j", async (options, path) => {
    const started: Promise<unknown> = Reflect.apply(serve, undefined, [handler, options]);
    await expect(started).rejects.toMatchObject({
      code: "invalid_configuration",
      problems: [{ path }],
    });
  });

  it("may have less time for a request than the headers have by default", async () => {
    const server = await serve(handler, { port: 0, limits: { requestTimeout: 10_000 } });
    await server.close();
  });

  it("name the range of a port", async () => {
    await expect(serve(handler, { port: 65_536 })).rejects.toThrow(
      "`port` must be a whole number from 0 to 65535.",
    );
  });

  it.each([
    [{ writeStall: "30s" }, "writeStall"],
    [{ writeStall: 0.5 }, "writeStall"],
    [{ writestall: 1 }, "writestall"],
    [7, ""],
  ])("of its bridge are refused when they are %j", (options, path) => {
    expect(() => Reflect.apply(toNodeHandler, undefined, [handler, options])).toThrow(
      expect.objectContaining({
        code: "invalid_configuration",
        problems: [expect.objectContaining({ path })],
      }),
    );
  });
});
