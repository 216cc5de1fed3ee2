import { openaiCompatible } from "@tollgate/provider-openai";
import { describeBindingContract } from "@tollgate/testing/binding-contract";
import { serve } from "../src/index.ts";

describeBindingContract("node", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve: (gateway, { writeStall }) =>
    serve(gateway, { port: 0, limits: { writeStall, closing: 1 } }),
});
