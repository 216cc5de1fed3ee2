import { connect, createServer, type Server, type Socket } from "node:net";

/** What stands between a client and a server of this machine, and can fail as networks do. */
export interface TcpProxy {
  /** Where clients connect, on 127.0.0.1. */
  readonly port: number;
  /** Nothing passes any more in either direction, and nobody is told; new connections are taken and kept as silent. */
  blackHole(): void;
  /** What was held back passes, and everything from now on. */
  mend(): void;
  /** Resets every connection. */
  cut(): void;
  /**
   * Resets one connection when a client sends `text` on it: `before` the server hears of it, or `after` the server has
   * answered it and before the client hears. Happens once; resolves when it has.
   */
  cutAt(text: string, when: "before" | "after"): Promise<void>;
  /** How many connections there are. */
  connections(): number;
  close(): Promise<void>;
}

/** Where one connection is to be cut. */
interface Cut {
  readonly text: string;
  readonly when: "before" | "after";
  readonly done: () => void;
}

/** Starts a proxy on a free port, before a server on 127.0.0.1. */
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
  throw new Error("the proxy does not listen");
}
