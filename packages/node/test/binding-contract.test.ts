import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { openaiCompatible } from "@tollgate/provider-openai";
import { serve } from "../src/index.ts";

describeBindingContract("node", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve: (gateway, { writeStall }) =>
    serve(gateway, { port: 0, limits: { writeStall, closing: 1 } }),
});
