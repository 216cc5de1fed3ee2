import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { Hono } from "hono";

describeBindingContract("gateway.fetch in Hono", {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  serve(gateway, { prefix, writeStall }) {
    const app = new Hono();
    app.all(`${decodeURI(prefix)}/*`, (context) => gateway.fetch(context.req.raw));
    app.onError((error, context) => {
      // `fetch` rejects if the client has left. Nobody reads this answer.
      if (context.req.raw.signal.aborted) return context.body(null);
      throw error;
    });
    return serve(app, { port: 0, limits: { writeStall, closing: 1 } });
  },
});
