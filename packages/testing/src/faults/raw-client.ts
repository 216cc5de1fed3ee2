import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** An HTTP client with full control over its bytes and its disconnect. */
export interface RawClient {
  /** Sends bytes as they are. */
  send(bytes: string | Uint8Array): void;
  /** Sends a whole POST request with a JSON body. */
  post(body: unknown, request: RawPost): void;
  /** All bytes received so far, as text. */
  received(): string;
  /** Resolves when `text` has arrived. Rejects if the connection ends without it. */
  until(text: string): Promise<void>;
  /** Resolves with everything received when the server has closed the connection. */
  ended(): Promise<string>;
  /** Pauses and resumes reading. Meanwhile the server's bytes fill the system's buffers. */
  pause(): void;
  resume(): void;
  /** Closes its sending side with FIN and continues to read. */
  halfClose(): void;
  /** Disconnects with FIN. */
  close(): void;
  /** Disconnects with RST. */
  reset(): void;
}

/** The secret, path and headers of a raw POST request. */
export interface RawPost {
  readonly secret: string;
  /** Default `/v1/chat/completions`. */
  readonly path?: string;
  readonly headers?: readonly string[];
}

const opened = channel("tollgate.testing.client");

/**
 * Connects to `http://host:port`. Publishes its socket on the diagnostics channel `tollgate.testing.client`, so that a suite
 * can look for secrets in everything that its clients receive.
 */
export async function rawClient(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  opened.publish(socket);
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  // Callers see the end in the received bytes.
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.setNoDelay(true);
  const received = (): string => Buffer.concat(parts).toString();
  const isOver = (): boolean => socket.readableEnded || socket.destroyed;
  return {
    send: (bytes) => void socket.write(bytes),
    post: (body, request) => void socket.write(postBytes(body, request)),
    received,
    async until(text) {
      while (!received().includes(text)) {
        if (isOver())
          throw new Error(`The connection ended without ${JSON.stringify(text)}: ${received()}`);
        await nextEvent(socket);
      }
    },
    async ended() {
      while (!isOver()) await nextEvent(socket);
      socket.destroy();
      return received();
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    halfClose: () => void socket.end(),
    close: () => void socket.destroy(),
    reset: () => void socket.resetAndDestroy(),
  };
}

/** Resolves when bytes arrive or the connection ends. */
function nextEvent(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const onEvent = (): void => {
      socket.off("data", onEvent).off("end", onEvent).off("close", onEvent);
      resolve();
    };
    socket.on("data", onEvent).on("end", onEvent).on("close", onEvent);
  });
}

function postBytes(body: unknown, request: RawPost): string {
  const { secret, path = "/v1/chat/completions", headers = [] } = request;
  const text = JSON.stringify(body);
  const lines = [
    `POST ${path} HTTP/1.1`,
    "host: gateway.test",
    "content-type: application/json",
    `authorization: Bearer ${secret}`,
    ...headers,
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${text}`;
}
