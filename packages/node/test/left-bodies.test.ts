import { afterEach, expect, it } from "vitest";
import { type RunningServer, serve } from "../src/index.ts";
import { rawClient } from "./raw-client.ts";

let server: RunningServer | undefined;
afterEach(() => server?.close());

it("answers the next request on a connection after a body that was given up halfway", async () => {
  let requests = 0;
  server = await serve(
    {
      async fetch(request) {
        if (++requests > 1) return new Response("the next");
        const reader = request.body?.getReader();
        await reader?.read();
        await reader?.cancel();
        return new Response("too large", { status: 413 });
      },
    },
    { port: 0 },
  );
  const client = await rawClient(server.url);
  const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
  client.write(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`);
  await client.until("too large");
  client.write(`${chunk.repeat(100)}0\r\n\r\n`);
  client.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  expect(await client.closed()).toContain("the next");
});
