import { tollgate } from "@tollgate/express";
import express from "express";
import { gateway, introduce, spend } from "./gateway.ts";

const app = express();
// Mount it before the body parser: the gateway reads the bytes of a body itself.
app.use("/ai", tollgate(gateway));
app.use(express.json());
app.get("/spend", async (_request, response) => void response.json(await spend()));

const server = app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", async (error) => {
  if (error) throw error; // Express 5 also calls this if it can't listen
  const address = server.address();
  const port = typeof address === "object" ? address?.port : null;
  console.log(await introduce(`http://127.0.0.1:${port}`));
});

const stop = (): void => {
  server.close(() => void gateway.close());
};
process.once("SIGTERM", stop).once("SIGINT", stop);
