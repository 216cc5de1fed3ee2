/** Portkey's gateway, started by its package. Its own headers point it to the fake upstream. */
import { createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

const upstream = process.env["BENCH_UPSTREAM"] ?? "";
const port = await freePort();
process.argv.push(`--port=${port}`, "--headless");
// It listens before its module has finished: it prints a welcome for a second.
const started = import(import.meta.resolve("@portkey-ai/gateway/build/start-server.js"));

const origin = `http://127.0.0.1:${port}`;
for (let tries = 0; tries < 2_000 && !(await listens()); tries += 1) await wait(5);
process.send?.({
  origin,
  headers: {
    authorization: "Bearer bench",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": upstream,
  },
});
process.on("message", () => process.send?.(null));
process.on("disconnect", () => process.exit(0));
await started;

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function listens(): Promise<boolean> {
  return fetch(origin).then(
    () => true,
    () => false,
  );
}
