import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";

/** A request with its exact bytes, and the raw connection for the answer. */
export interface UpstreamExchange {
  /** The request line and the headers, as text. */
  readonly head: string;
  readonly body: string;
  /** Sends raw bytes. Resolves when the system has taken them, so each call can arrive separately. */
  send(bytes: string | Uint8Array): Promise<void>;
  /** Ends with FIN. */
  end(): void;
  /** Ends with RST. */
  reset(): void;
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>;
}

/** An upstream with full control over its bytes. */
export interface ScriptedUpstream {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** Every request that arrived, in order. */
  readonly requests: readonly UpstreamExchange[];
  /** The number of open connections, and of connections ever made. */
  readonly connections: { readonly open: number; readonly made: number };
  close(): Promise<void>;
}

const accepted = channel("tollgate.testing.upstream");

/**
 * Starts an upstream on a free local port. A script answers each request: it sends bytes, waits for the test's barriers,
 * and ends with FIN or RST. If it returns without an end, the connection stays open for the next request. Publishes each
 * socket on the diagnostics channel `tollgate.testing.upstream`, so that a suite can look for secrets in all requests.
 */
export async function scriptedUpstream(
  script: (exchange: UpstreamExchange, number: number) => Promise<void> | void,
): Promise<ScriptedUpstream> {
  const requests: UpstreamExchange[] = [];
  const sockets = new Set<Socket>();
  const connections = { open: 0, made: 0 };
  const server = createServer({ noDelay: true }, (socket) => {
    accepted.publish(socket);
    sockets.add(socket);
    connections.open += 1;
    connections.made += 1;
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => {
      socket.once("close", () => {
        sockets.delete(socket);
        connections.open -= 1;
        resolve();
      });
    });
    readRequests(socket, ({ head, body }) => {
      const exchange = { head, body, closed, ...answering(socket) };
      requests.push(exchange);
      // A script that fails ends its connection.
      Promise.resolve(script(exchange, requests.length)).catch((error) => socket.destroy(error));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The upstream has no port.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    connections,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answering(socket: Socket): Pick<UpstreamExchange, "send" | "end" | "reset"> {
  return {
    send: (bytes) =>
      new Promise((resolve) => {
        // After one turn, the receiver has read them, and the next bytes are another read.
        if (socket.destroyed) setImmediate(resolve);
        else socket.write(bytes, () => setImmediate(resolve));
      }),
    end: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
  };
}

/** Calls `onRequest` for every request whose whole body has arrived. */
function readRequests(
  socket: Socket,
  onRequest: (request: { readonly head: string; readonly body: string }) => void,
): void {
  let received = Buffer.alloc(0);
  socket.on("data", (bytes) => {
    received = Buffer.concat([received, bytes]);
    for (;;) {
      const end = received.indexOf("\r\n\r\n");
      if (end === -1) return;
      const head = received.subarray(0, end).toString("latin1");
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (received.length < end + 4 + length) return;
      const body = received.subarray(end + 4, end + 4 + length).toString("utf8");
      received = received.subarray(end + 4 + length);
      onRequest({ head, body });
    }
  });
}
