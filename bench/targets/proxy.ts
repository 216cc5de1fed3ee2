/** A proxy without any gateway, for the targets that are lower bounds: `node:http` in, `undici` out. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, type Dispatcher } from "undici";

const upstream = new URL(process.env["BENCH_UPSTREAM"] ?? "");
const agent = new Agent({ connections: 2_048 });

/** Tells the bench where it listens, and ends with it. `handle` gets each request with its whole body. */
export function serveProxy(
  handle: (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer) => void,
): void {
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => handle(incoming, outgoing, Buffer.concat(chunks)));
  });
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    process.send?.({ origin: `http://127.0.0.1:${port}`, headers: {} });
  });
  process.on("message", () => process.send?.(null));
  process.on("disconnect", () => process.exit(0));
}

/** Sends a body to the upstream, and its answer to the handler. */
export function forward(
  incoming: IncomingMessage,
  body: Buffer,
  handler: Dispatcher.DispatchHandler,
): void {
  agent.dispatch(
    {
      origin: upstream.origin,
      path: `${upstream.pathname}/chat/completions`,
      method: "POST",
      headers: { "content-type": incoming.headers["content-type"] ?? "application/json" },
      body,
    },
    handler,
  );
}

/** The headers of an answer that a proxy passes on. */
export function kept(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const names = ["content-type", "content-length"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}
