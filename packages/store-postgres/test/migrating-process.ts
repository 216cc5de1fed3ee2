/** A separate process for the tests: `node migrating-process.ts URL SCHEMA` migrates on request. */
import { once } from "node:events";
import { postgresStore } from "../src/index.ts";

const [url = "", schema = ""] = process.argv.slice(2);
const store = postgresStore({ url }, { schema });
process.stdout.write("ready\n");
await once(process.stdin, "data");
await store.migrate();
await store.close();
