import { tollgate } from "@tollgate/fastify";
import fastify from "fastify";
import { gateway, introduce, spend } from "./gateway.ts";

const app = fastify();
await app.register(tollgate, { gateway, prefix: "/ai" });
app.get("/spend", () => spend());
app.addHook("onClose", () => gateway.close());

const url = await app.listen({ port: Number(process.env["PORT"] ?? 3000), host: "127.0.0.1" });
console.log(await introduce(url));

const stop = (): void => void app.close();
process.once("SIGTERM", stop).once("SIGINT", stop);
