import type { ClientSignal } from "@tollgate/core";
import { afterEach, describe, expect, it } from "vitest";
import { type RunningServer, serve } from "../src/index.ts";
import { bodyOf } from "./body-of.ts";
import { post, rawClient } from "./raw-client.ts";

let server: RunningServer | undefined;
afterEach(() => server?.close());

/** A promise and the function that resolves it. */
function signalled(): { readonly promise: Promise<void>; readonly done: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, done: () => resolve() };
}

const leavings = [
  ["closes", (client: Awaited<ReturnType<typeof rawClient>>) => client.socket.destroy()],
  ["resets", (client: Awaited<ReturnType<typeof rawClient>>) => client.socket.resetAndDestroy()],
  ["half-closes", (client: Awaited<ReturnType<typeof rawClient>>) => client.socket.end()],
] as const;

describe("a client that hangs up", () => {
  it.each(leavings)("%s before the answer: the request's signal aborts", async (_name, leave) => {
    const asked = signalled();
    const aborted = signalled();
    server = await serve(
      {
        async fetch(request) {
          await request.text();
          asked.done();
          request.signal.addEventListener("abort", aborted.done);
          await aborted.promise;
          return new Response("nobody reads this");
        },
      },
      { port: 0 },
    );
    const client = await rawClient(server.url);
    client.write(post("{}"));
    await asked.promise;
    leave(client);
    await aborted.promise;
  });

  it.each(leavings)("%s in the middle of its body: reading it fails", async (_name, leave) => {
    const asked = signalled();
    const failed = signalled();
    server = await serve(
      {
        async fetch(request) {
          asked.done();
          await request.arrayBuffer().catch(failed.done);
          return new Response("nobody reads this");
        },
      },
      { port: 0 },
    );
    const client = await rawClient(server.url);
    client.write("POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{");
    await asked.promise;
    leave(client);
    await failed.promise;
  });

  it.each(leavings)("%s in mid-stream: a Response's body is cancelled", async (_name, leave) => {
    const cancelled = signalled();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from("data: 1\n\n")),
      cancel: cancelled.done,
    });
    server = await serve({ fetch: async () => new Response(body) }, { port: 0 });
    const client = await rawClient(server.url);
    client.write(post("{}"));
    await client.until("data: 1");
    leave(client);
    await cancelled.promise;
  });

  it("ends the iteration of an answer's body", async () => {
    const ended = signalled();
    const gone = signalled();
    async function* events(signal: ClientSignal): AsyncGenerator<string> {
      try {
        yield "data: 1\n\n";
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        gone.done();
        yield "data: 2\n\n";
      } finally {
        ended.done();
      }
    }
    server = await serve(
      {
        answer: async (request) => ({
          status: 200,
          headers: { "content-type": "text/event-stream" },
          body: bodyOf(events(request.signal)),
        }),
      },
      { port: 0 },
    );
    const client = await rawClient(server.url);
    client.write(post("{}"));
    await client.until("data: 1");
    client.socket.destroy();
    await gone.promise;
    await ended.promise;
  });

  it("does not keep the server from answering the next request", async () => {
    const asked = signalled();
    server = await serve(
      {
        async fetch(request) {
          if (request.url.endsWith("/wait")) {
            asked.done();
            await new Promise<void>((resolve) =>
              request.signal.addEventListener("abort", () => resolve()),
            );
            throw new Error("the client left");
          }
          return new Response("here");
        },
      },
      { port: 0 },
    );
    const client = await rawClient(server.url);
    client.write(post("{}", "/wait"));
    await asked.promise;
    client.socket.resetAndDestroy();
    expect(await (await fetch(`${server.url}/next`)).text()).toBe("here");
  });
});
