import { serve } from "@tollgate/node";
import { app } from "./app.ts";
import { gateway, introduce } from "./gateway.ts";

const server = await serve(app, {
  port: Number(process.env["PORT"] ?? 3000),
  close: gateway.close,
});
console.log(await introduce(server.url));

const stop = async (): Promise<void> => {
  await server.close();
};
process.once("SIGTERM", stop).once("SIGINT", stop);
