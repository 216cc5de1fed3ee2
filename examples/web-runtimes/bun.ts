import { gateway } from "./gateway.ts";
import { talk } from "./talk.ts";

/** What is used of Bun here, whose types are not installed. */
declare const Bun: {
  serve(options: {
    readonly hostname: string;
    readonly port: number;
    readonly idleTimeout: number;
    readonly fetch: (request: Request) => Promise<Response>;
  }): { readonly port: number; stop(cutOpen: boolean): Promise<void> };
};

// A model may think for longer than the ten seconds after which Bun cuts a quiet answer; 255 is the most it takes.
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
