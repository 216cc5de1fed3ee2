import { createServer } from "node:http";
import { toNodeHandler } from "@tollgate/node";
import { gateway, introduce, spend } from "./gateway.ts";

const answer = toNodeHandler(gateway);

const server = createServer(async (incoming, outgoing) => {
  if (incoming.url?.startsWith("/ai/")) return answer(incoming, outgoing);
  const found = incoming.url === "/spend";
  outgoing.writeHead(found ? 200 : 404, { "content-type": "application/json" });
  outgoing.end(JSON.stringify(found ? await spend() : { error: "not found" }));
});

server.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", async () => {
  const address = server.address();
  const port = typeof address === "object" ? address?.port : null;
  console.log(await introduce(`http://127.0.0.1:${port}`));
});

const stop = (): void => {
  server.close(() => void gateway.close());
};
process.once("SIGTERM", stop).once("SIGINT", stop);
