import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A client made of bytes: it sends what it is told, and leaves as it is told. */
export interface RawClient {
  /** Sends bytes as they are. */
  send(bytes: string | Uint8Array): void;
  /** Sends a whole POST with a JSON body, signed with `secret`; `headers` are further header lines. */
  post(body: unknown, request: RawPost): void;
  /** All bytes that came so far, as text. */
  received(): string;
  /** Resolves when `text` has come; rejects when the connection ends without it. */
  until(text: string): Promise<void>;
  /** Resolves with all that came when the server has ended the connection. */
  ended(): Promise<string>;
  /** Stops and goes on reading: what the server sends fills the buffers of the system. */
  pause(): void;
  resume(): void;
  /** Ends its own side with FIN and goes on reading. */
  halfClose(): void;
  /** Leaves with FIN. */
  close(): void;
  /** Leaves with RST. */
  reset(): void;
}

/** What a raw POST needs beside its body. */
export interface RawPost {
  readonly secret: string;
  /** Default `/v1/chat/completions`. */
  readonly path?: string;
  readonly headers?: readonly string[];
}

/** Connects to `http://host:port`. */
export async function rawClient(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  // How it ended is told by what came until then.
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
        if (isOver()) throw new Error(`It ended without ${JSON.stringify(text)}: ${received()}`);
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

/** Resolves when something came or the connection ended. */
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
