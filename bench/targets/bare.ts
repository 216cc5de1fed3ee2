/** The lower bound: node:http in, undici out, nothing between. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent } from "undici";

const upstream = new URL(process.env["BENCH_UPSTREAM"] ?? "");
const agent = new Agent({ connections: 2_048 });

const server = createServer((incoming, outgoing) => {
  const chunks: Buffer[] = [];
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
  incoming.on("end", () => forward(incoming, outgoing, Buffer.concat(chunks)));
});

function forward(incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): void {
  agent.dispatch(
    {
      origin: upstream.origin,
      path: `${upstream.pathname}/chat/completions`,
      method: "POST",
      headers: { "content-type": incoming.headers["content-type"] ?? "application/json" },
      body,
    },
    {
      onRequestStart: () => {},
      onResponseStart: (_, status, headers) => {
        outgoing.writeHead(status, kept(headers));
      },
      onResponseData: (_, chunk) => void outgoing.write(chunk),
      onResponseEnd: () => void outgoing.end(),
      onResponseError: () => void outgoing.destroy(),
    },
  );
}

function kept(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const names = ["content-type", "content-length"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}

server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ origin: `http://127.0.0.1:${port}`, headers: {} });
});
process.on("message", () => process.send?.(null));
process.on("disconnect", () => process.exit(0));
