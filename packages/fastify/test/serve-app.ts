import type { Binding } from "@tollgate/conformance/binding-contract";
import fastify from "fastify";
import { tollgate } from "../src/index.ts";

/** Serves an app on a free port. */
export const serveApp: Binding["serve"] = async (gateway, { prefix, writeStall }) => {
  const app = fastify({ forceCloseConnections: true });
  await app.register(tollgate, { gateway, prefix: decodeURI(prefix), writeStall });
  return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
};
