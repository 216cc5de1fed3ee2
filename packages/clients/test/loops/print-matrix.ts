/**
 * `npm run clients:matrix`: every client library's three-turn tool loop in front of every scripted upstream, streamed and
 * plain, with and without the client's copy of the provider's state. Runs them first directly, for comparison: upstreams
 * refuse libraries that drop the state. Then it runs them through the gateway, where every conversation must pass.
 * `--client` and `--upstream` select names that contain a text. Exits with 1 if a conversation through the gateway fails.
 */
import { parseArgs } from "node:util";
import { chatClients, clients, plainOnly } from "./clients.ts";
import { type Cell, startMatrix, type UpstreamName, upstreamNames } from "./matrix.ts";

const text = { type: "string", default: "" } as const;
const { values } = parseArgs({ options: { client: text, upstream: text } });
const names = Object.keys(clients).filter((name) => name.includes(values.client));
const upstreams = upstreamNames.filter((name) => name.includes(values.upstream));
const ways = [true, false].flatMap((keepsState) =>
  [false, true].map((stream) => ({ keepsState, stream })),
);
const wayOf = ({ stream, keepsState }: (typeof ways)[number]) =>
  `${stream ? "stream" : "plain"}, ${keepsState ? "kept" : "dropped"}`;
const matrix = await startMatrix();
const write = (line: string) => process.stdout.write(`${line}\n`);

write("Directly: a library that drops the state is refused\n");
await printTable(
  (upstream, client) => upstream !== "anthropic" && chatClients.includes(client),
  matrix.direct,
  "refused",
);
write("\nThrough the gateway\n");
const failures = await printTable(() => true, matrix.governed, "FAIL");
await matrix.stop();
for (const failure of failures) write(failure);
write(failures.length === 0 ? "\nAll passed." : `\n${failures.length} failed.`);
process.exit(failures.length === 0 ? 0 : 1);

/** Prints a line for each upstream and client, and returns a line for each conversation that failed. */
async function printTable(
  applies: (upstream: UpstreamName, client: string) => boolean,
  run: (cell: Cell) => Promise<string | null>,
  failed: string,
): Promise<readonly string[]> {
  const row = (cells: readonly string[]) => write(cells.map((cell) => cell.padEnd(17)).join(""));
  row(["", "".padEnd(35), ...ways.map(wayOf)]);
  const failures: string[] = [];
  for (const upstream of upstreams)
    for (const client of names.filter((name) => applies(upstream, name))) {
      const results: string[] = [];
      for (const way of ways) {
        if (way.stream && plainOnly.includes(client)) {
          results.push("-");
          continue;
        }
        const problem = await run({ client, upstream, ...way });
        results.push(problem === null ? "pass" : failed);
        if (problem !== null) failures.push(`${client}, ${upstream}, ${wayOf(way)}: ${problem}`);
      }
      row([upstream, client.padEnd(35), ...results]);
    }
  return failures;
}
