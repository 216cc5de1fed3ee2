import { serve } from "@tollgate/node";
import { describeBindingContract } from "@tollgate/testing/binding-contract";
import { Hono } from "hono";

describeBindingContract("gateway.fetch in Hono", {
  serve(gateway, { prefix, writeStall }) {
    const app = new Hono().all(`${decodeURI(prefix)}/*`, (context) =>
      gateway.fetch(context.req.raw),
    );
    return serve(app, { port: 0, limits: { writeStall, drain: 1, cutOff: 1 } });
  },
});
