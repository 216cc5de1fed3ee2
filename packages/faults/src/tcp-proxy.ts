import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A proxy that a test can break. */
export interface TcpProxy {
  readonly port: number;
  /** How many pieces clients have sent since the last `atPiece`. */
  readonly pieces: () => number;
  /**
   * Selects the n-th piece that a client sends from now on. `before` drops it and cuts the connection. `after` forwards
   * it and cuts when the server answers, so the answer is lost. `hold` keeps it and everything after it until
   * `release`.
   */
  atPiece(nth: number, action: "cut before" | "cut after" | "hold"): void;
  /** Resolves when that piece has arrived. */
  reached(): Promise<void>;
  release(): void;
  /** Silently drops everything in both directions from now on. */
  blackHole(): void;
  /** Forwards new connections again, and cuts the silent ones. */
  heal(): void;
  close(): Promise<void>;
}

interface Trap {
  remaining: number;
  readonly action: "cut before" | "cut after" | "hold";
  readonly reached: PromiseWithResolvers<void>;
  readonly released: PromiseWithResolvers<void>;
}

/** Listens on a free port of this machine and forwards to a server's port. */
export async function tcpProxy(port: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let trap: Trap | null = null;
  let isBlackHole = false;
  let pieces = 0;

  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((client) => {
    keep(client);
    const upstream = keep(connect(port, "127.0.0.1"));
    let isAnswerLost = false;
    const cut = (): void => {
      client.destroy();
      upstream.destroy();
    };
    const pass = async (piece: Buffer): Promise<void> => {
      pieces++;
      const triggered = trap !== null && --trap.remaining === 0 ? trap : null;
      triggered?.reached.resolve();
      if (triggered?.action === "cut before") return cut();
      if (triggered?.action === "cut after") isAnswerLost = true;
      if (triggered?.action === "hold") {
        client.pause();
        await triggered.released.promise;
        client.resume();
      }
      if (!isBlackHole) upstream.write(piece);
    };
    client.on("data", (piece: Buffer) => void pass(piece));
    upstream.on("data", (piece: Buffer) => {
      if (isAnswerLost) cut();
      else if (!isBlackHole) client.write(piece);
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  return {
    port: address.port,
    pieces: () => pieces,
    atPiece(nth, action) {
      pieces = 0;
      trap = {
        remaining: nth,
        action,
        reached: Promise.withResolvers(),
        released: Promise.withResolvers(),
      };
    },
    reached: () => trap?.reached.promise ?? Promise.reject(new Error("No piece is selected.")),
    release: () => trap?.released.resolve(),
    blackHole() {
      isBlackHole = true;
    },
    heal() {
      isBlackHole = false;
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
