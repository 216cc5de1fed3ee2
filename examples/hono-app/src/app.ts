import { Hono } from "hono";
import { gateway, spend } from "./gateway.ts";

/** A Hono app for any runtime. It only has to mount `gateway.fetch`. */
export const app = new Hono();
app.all("/ai/*", (context) => gateway.fetch(context.req.raw));
app.get("/spend", async (context) => context.json(await spend()));
