import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A TCP client that sends bytes unchanged and keeps the bytes it receives. */
export interface RawClient {
  readonly socket: Socket;
  write(bytes: string): void;
  /** Everything received so far. */
  received(): string;
  /** Resolves once `text` has arrived. */
  until(text: string): Promise<void>;
  /** Resolves with everything received once the server has closed the connection. */
  closed(): Promise<string>;
}

export async function rawClient(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => {});
  await once(socket, "connect");
  const received = (): string => Buffer.concat(parts).toString();
  return {
    socket,
    write: (bytes) => void socket.write(bytes),
    received,
    async until(text) {
      while (!received().includes(text)) {
        if (socket.readableEnded || socket.destroyed)
          throw new Error(`closed without ${JSON.stringify(text)}: ${received()}`);
        await Promise.race([once(socket, "data"), once(socket, "end"), once(socket, "close")]);
      }
    },
    async closed() {
      if (!socket.readableEnded && !socket.destroyed)
        await Promise.race([once(socket, "end"), once(socket, "close")]);
      socket.destroy();
      return received();
    },
  };
}

/** A whole POST with a JSON body. */
export function post(body: string, target = "/v1/chat/completions", headers = ""): string {
  return (
    `POST ${target} HTTP/1.1\r\nhost: gateway.test\r\ncontent-type: application/json\r\n${headers}` +
    `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}
