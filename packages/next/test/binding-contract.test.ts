import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import type { Mountable } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { toNextHandlers } from "../src/index.ts";

/** Calls the handlers as Next does: one by the method, none for the others, whatever the path. */
function routeModule(gateway: Mountable, writeStall: number) {
  const handlers = new Map(Object.entries(toNextHandlers(gateway, { writeStall })));
  return {
    async fetch(request: Request): Promise<Response> {
      const handler = handlers.get(request.method);
      return handler ? handler(request) : new Response(null, { status: 405 });
    },
  };
}

describeBindingContract("next", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve: (gateway, { writeStall }) =>
    serve(routeModule(gateway, writeStall), { port: 0, limits: { closing: 1 } }),
});
