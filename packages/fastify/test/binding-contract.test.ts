import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { openaiCompatible } from "@tollgate/provider-openai";
import { serveApp } from "./serve-app.ts";

describeBindingContract("fastify 5", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve: serveApp,
});
