import type { Binding } from "@tollgate/conformance/binding-contract";
import { serve } from "@tollgate/node";
import { toNextHandlers } from "../src/index.ts";

/** Calls the handlers as Next does: one by the method, none for the others, whatever the path. */
export const serveRouteModule: Binding["serve"] = (gateway, { writeStall }) => {
  const handlers = new Map(Object.entries(toNextHandlers(gateway, { writeStall })));
  const module = {
    async fetch(request: Request): Promise<Response> {
      const handler = handlers.get(request.method);
      return handler ? handler(request) : new Response(null, { status: 405 });
    },
  };
  return serve(module, { port: 0, limits: { closing: 1 } });
};
