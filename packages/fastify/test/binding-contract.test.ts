import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { openaiCompatible } from "@tollgate/provider-openai";
import fastify from "fastify";
import { tollgate } from "../src/index.ts";

describeBindingContract("fastify 5", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  async serve(gateway, { prefix, writeStall }) {
    const app = fastify({ forceCloseConnections: true });
    await app.register(tollgate, { gateway, prefix: decodeURI(prefix), writeStall });
    return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
  },
});
