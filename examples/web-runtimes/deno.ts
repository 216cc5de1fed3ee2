import { gateway } from "./gateway.ts";
import { talk } from "./talk.ts";

/** The parts of Deno that this example uses. Deno's types aren't installed. */
declare const Deno: {
  serve(
    options: { readonly hostname: string; readonly port: number },
    handler: (request: Request) => Promise<Response>,
  ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
};

const server = Deno.serve({ hostname: "127.0.0.1", port: 0 }, gateway.fetch);

try {
  await talk(`http://127.0.0.1:${server.addr.port}`);
} finally {
  await server.shutdown();
  await gateway.close();
}
