import { connect, createServer, type Server, type Socket } from "node:net";

/** A proxy between a client and a local server, which can fail like a network. */
export interface TcpProxy {
  /** Where clients connect, on 127.0.0.1. */
  readonly port: number;
  /** Silently drops everything in both directions. New connections are accepted and stay silent. */
  blackHole(): void;
  /** Passes everything again, including the bytes held back. */
  mend(): void;
  /** Resets every connection. */
  cut(): void;
  /**
   * Resets one connection when a client sends `text`: `before` the server receives it, or `after` the server has answered
   * and before the client receives the answer. Happens once, and resolves then.
   */
  cutAt(text: string, when: "before" | "after"): Promise<void>;
  /** The number of open connections. */
  connections(): number;
  close(): Promise<void>;
}

/** When to cut one connection. */
interface Cut {
  readonly text: string;
  readonly when: "before" | "after";
  readonly done: () => void;
}

/** Starts a proxy on a free port, in front of a server on 127.0.0.1. */
export async function tcpProxy(target: { readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isBlack = false;
  let cut: Cut | null = null;

  const drop = (pair: readonly [Socket, Socket]): void => {
    pairs.delete(pair);
    for (const socket of pair) socket.resetAndDestroy();
  };
  const cutHere = (pair: readonly [Socket, Socket]): void => {
    cut?.done();
    cut = null;
    drop(pair);
  };
  const server = createServer((client) => {
    const upstream = connect(target.port, "127.0.0.1");
    const pair = [client, upstream] as const;
    pairs.add(pair);
    let isAnswerSwallowed = false;
    client.on("data", (bytes) => {
      const hit = cut !== null && bytes.includes(cut.text) ? cut : null;
      if (hit?.when === "before") return cutHere(pair);
      isAnswerSwallowed ||= hit !== null;
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (isAnswerSwallowed) cutHere(pair);
      else client.write(bytes);
    });
    for (const socket of pair) {
      if (isBlack) socket.pause();
      socket.on("error", () => drop(pair));
      socket.on("close", () => drop(pair));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    port: portOf(server),
    blackHole() {
      isBlack = true;
      for (const socket of [...pairs].flat()) socket.pause();
    },
    mend() {
      isBlack = false;
      for (const socket of [...pairs].flat()) socket.resume();
    },
    cut() {
      for (const pair of [...pairs]) drop(pair);
    },
    cutAt: (text, when) =>
      new Promise((resolve) => {
        cut = { text, when, done: resolve };
      }),
    connections: () => pairs.size,
    async close() {
      for (const pair of [...pairs]) drop(pair);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address === "object" && address) return address.port;
  throw new Error("The proxy doesn't listen.");
}
