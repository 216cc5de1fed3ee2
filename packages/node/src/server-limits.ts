import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Limits of the server for each connection. Sizes are in bytes, times in milliseconds. */
export interface ServerLimits {
  /** The size of all request headers together. Larger is 431. */
  readonly headerBytes: number;
  /** Header lines of one request. More is 431. */
  readonly headerCount: number;
  /** The time for a request's headers, and for the whole request, to arrive. Later is 408. The first must not be longer. */
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  /** How long an idle connection stays open. */
  readonly keepAlive: number;
  /** Open connections. Further ones are closed at once. */
  readonly connections: number;
  /** The same for one address; for IPv6, for the 64 bits that name a network. Raise it behind a proxy with one address. */
  readonly connectionsPerAddress: number;
  /** How long a client may leave an answer unread before it is disconnected. */
  readonly writeStall: number;
  /** How long `close` may take by default. The remaining answers are cut off. */
  readonly closing: number;
}

/** The defaults of `limits`. */
export const defaultServerLimits: ServerLimits = {
  headerBytes: 16_384,
  headerCount: 200,
  headersTimeout: 15_000,
  requestTimeout: 120_000,
  keepAlive: 65_000,
  connections: 4_096,
  connectionsPerAddress: 2_048,
  writeStall: 30_000,
  closing: 25_000,
};

/** Closes connections at once whose address already has `most` open, before anything is read from them. */
export function limitConnectionsPerAddress(server: Server, most: number): void {
  const open = new Map<string, number>();
  server.on("connection", (socket: Socket) => {
    const { remoteAddress } = socket;
    // A Unix socket has no address.
    if (remoteAddress === undefined) return;
    const client = clientOf(remoteAddress);
    const count = open.get(client) ?? 0;
    if (count >= most) return void socket.destroy();
    open.set(client, count + 1);
    socket.once("close", () => {
      const rest = (open.get(client) ?? 0) - 1;
      if (rest > 0) open.set(client, rest);
      else open.delete(client);
    });
  });
}

/** The address that counts: for IPv6 the first 64 bits, because one client has all that follow. */
export function clientOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [head = [], tail = []] = address
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => "0");
  return [...head, ...zeros, ...tail].slice(0, 4).join(":");
}
