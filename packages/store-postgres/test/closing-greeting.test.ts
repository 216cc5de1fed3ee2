import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, inject, it, onTestFinished } from "vitest";
import { insertKey, stepIntent } from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema } from "./databases.ts";

/** A message from the server in PostgreSQL's protocol. */
function message(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, content]);
}

const fields = ["SFATAL", "VFATAL", "C57P01", "Mterminating connection", ""];

/** A server's messages that open a session and end it at once, all in one packet. */
const greetingAndFarewell = Buffer.concat([
  message("R", Buffer.alloc(4)),
  message("Z", Buffer.from("I")),
  message("E", Buffer.from(`${fields.join("\0")}\0`)),
]);

/** A proxy to the test server that ends the first sessions as they begin. */
async function openBehindFarewells(count: number): Promise<string> {
  const { port, hostname } = new URL(inject("postgresUrl"));
  const sockets = new Set<Socket>();
  let sessions = 0;
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    if (sessions++ < count) {
      socket.once("data", () => socket.write(greetingAndFarewell));
      return;
    }
    const onward = connect(Number(port), hostname).on("error", () => {});
    sockets.add(onward);
    socket.pipe(onward).pipe(socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("it has no port");
  const url = new URL(inject("postgresUrl"));
  url.port = String(address.port);
  return url.href;
}

it("replaces a connection that closes as soon as it opens, without an error in the process (F33, S43)", async () => {
  const store = postgresStore({ url: await openBehindFarewells(3) }, { schema: freshSchema() });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  expect(await store.openStep(stepIntent("first"))).toMatchObject({ opened: true });
});
