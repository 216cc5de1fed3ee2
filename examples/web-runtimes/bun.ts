import { gateway } from "./gateway.ts";
import { talk } from "./talk.ts";

/** The parts of Bun that this example uses. Bun's types aren't installed. */
declare const Bun: {
  serve(options: {
    readonly hostname: string;
    readonly port: number;
    readonly idleTimeout: number;
    readonly fetch: (request: Request) => Promise<Response>;
  }): { readonly port: number; stop(cutOpen: boolean): Promise<void> };
};

// Bun cuts an answer that is quiet for ten seconds, and a model may think for longer. 255 is Bun's maximum.
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 255,
  fetch: gateway.fetch,
});

try {
  await talk(`http://127.0.0.1:${server.port}`);
} finally {
  await server.stop(true);
  await gateway.close();
}
