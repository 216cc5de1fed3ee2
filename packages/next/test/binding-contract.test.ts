import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { openaiCompatible } from "@tollgate/provider-openai";
import { serveRouteModule } from "./route-module.ts";

describeBindingContract("next", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve: serveRouteModule,
});
