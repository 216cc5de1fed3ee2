/**
 * The lower bound of a durable record: the bare proxy, which appends each request to a table before it forwards it, and
 * each answer before it ends it. Requests that arrive together share a transaction. Nothing is read, checked or indexed.
 */
import { DatabaseSync } from "node:sqlite";
import { forward, kept, serveProxy } from "./proxy.ts";

/** Each row has this many bytes: the gateway stores about 6.3 KB for a plain call, in two transactions. */
const rowBytes = 3_150;

const database = new DatabaseSync(process.env["BENCH_DATABASE"] ?? "");
// As the gateway's store sets up its file.
for (const pragma of [
  "page_size = 2048",
  "journal_mode = WAL",
  "synchronous = FULL",
  "wal_autocheckpoint = 6000",
])
  database.exec(`PRAGMA ${pragma}`);
database.exec("CREATE TABLE journal (id INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT");
const insert = database.prepare("INSERT INTO journal (record) VALUES (?)");

let waiting: { readonly record: string; readonly written: () => void }[] = [];

/** Calls `written` when the bytes are on disk. */
function append(bytes: Buffer, written: () => void): void {
  waiting.push({ record: bytes.toString().padEnd(rowBytes), written });
  if (waiting.length === 1) setImmediate(commit);
}

function commit(): void {
  const group = waiting;
  waiting = [];
  database.exec("BEGIN IMMEDIATE");
  for (const { record } of group) insert.run(record);
  database.exec("COMMIT");
  for (const { written } of group) written();
}

serveProxy((incoming, outgoing, body) => {
  const chunks: Buffer[] = [];
  append(body, () =>
    forward(incoming, body, {
      onRequestStart: () => {},
      onResponseStart: (_, status, headers) => {
        outgoing.writeHead(status, kept(headers));
      },
      // The last chunk waits for the record, the others do not.
      onResponseData: (_, chunk) => {
        const before = chunks.at(-1);
        if (before !== undefined) outgoing.write(before);
        chunks.push(chunk);
      },
      onResponseEnd: () => append(Buffer.concat(chunks), () => outgoing.end(chunks.at(-1))),
      onResponseError: () => void outgoing.destroy(),
    }),
  );
});
