/** The gateway of LLMOps. Its package has no server, so it runs on Hono's server for Node. */
import { serve } from "@hono/node-server";

const { default: app } = await import("@llmops/gateway");
const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
  process.send?.({
    origin: `http://127.0.0.1:${port}`,
    headers: {
      authorization: "Bearer bench",
      "x-llmops-provider": "openai",
      "x-llmops-custom-host": process.env["BENCH_UPSTREAM"] ?? "",
    },
  });
});
process.on("message", () => process.send?.(null));
process.on("disconnect", () => server.close(() => process.exit(0)));
