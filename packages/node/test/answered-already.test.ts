import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { send, sendAnswer } from "../src/index.ts";

let server: Server | undefined;
afterEach(() => server?.close());

it.each([
  ["an answer", false],
  ["a Response", true],
])("releases the body if the host has already answered: %s", async (_, asWeb) => {
  const left = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<unknown>();
  server = createServer((_incoming, outgoing) => {
    outgoing.end("of the host");
    const sent = asWeb
      ? send(outgoing, new Response(new ReadableStream({ cancel: () => left.resolve() })))
      : sendAnswer(outgoing, {
          status: 200,
          headers: {},
          body: { byteLength: null, start: () => {}, leave: () => left.resolve() },
        });
    sent.catch(failed.resolve);
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(`http://127.0.0.1:${port}`);
  expect(await answer.text()).toBe("of the host");
  await left.promise;
  expect(await failed.promise).toMatchObject({ code: "ERR_HTTP_HEADERS_SENT" });
});
