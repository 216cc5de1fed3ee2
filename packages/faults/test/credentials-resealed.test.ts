import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway } from "@tollgate/core";
import { openaiCompatible } from "@tollgate/provider-openai";
import { type GatewayProcess, scriptedUpstream, spawnGateway } from "@tollgate/testing";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import type { CredentialProcessSettings } from "../src/credential-process.ts";
import { type DatabaseLocation, openDatabase } from "../src/stores/database-location.ts";
import { plainAnswer } from "../src/upstream-bytes.ts";
import { freshSchema } from "./postgres-fixture.ts";

vi.setConfig({ testTimeout: 60_000 });

const script = new URL("../src/credential-process.ts", import.meta.url);
const [k1, k2] = [1, 2].map(() => randomBytes(32).toString("base64")) as [string, string];
const organizations = 60;

/** An organization, the secret of its API key and the credential it brought. */
interface Customer {
  readonly organizationId: string;
  readonly secret: string;
  readonly apiKey: string;
}

const places: readonly (readonly [string, () => DatabaseLocation])[] = [
  ["one SQLite file", temporaryFile],
  ["PostgreSQL", () => ({ url: inject("postgresUrl"), schema: freshSchema() })],
];

function temporaryFile(): DatabaseLocation {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-credentials-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { filename: join(folder, "tollgate.db") };
}

/** An upstream that returns the credential of each request. */
async function openUpstream() {
  const upstream = await scriptedUpstream(({ head, send }) =>
    send(plainAnswer(/^authorization: Bearer (.*)$/im.exec(head)?.[1] ?? "none")),
  );
  onTestFinished(() => upstream.close());
  return upstream;
}

/** Runs with a gateway on the database that serves no requests. */
async function administer<Result>(
  { place, upstream, secrets }: CredentialProcessSettings,
  run: (gateway: ReturnType<typeof createGateway>) => Promise<Result>,
): Promise<Result> {
  const own = openaiCompatible({ baseURL: `${upstream}/v1`, connection: "customer" });
  await using gateway = createGateway({
    store: openDatabase(place),
    providers: { own },
    secrets,
    maintenance: false,
  });
  return await run(gateway);
}

function createCustomers(settings: CredentialProcessSettings): Promise<readonly Customer[]> {
  return administer(settings, async ({ keys, connections }) => {
    const numbers = Array.from({ length: organizations }, (_, at) => at);
    return Promise.all(
      numbers.map(async (at) => {
        const organizationId = `customer-${at}`;
        const apiKey = `sk-${at}`;
        await connections.set({ organizationId, gateway: "own", apiKey });
        const { secret } = await keys.create({ organizationId, userId: "jane", label: "key" });
        return { organizationId, secret, apiKey };
      }),
    );
  });
}

async function start(settings: CredentialProcessSettings): Promise<GatewayProcess> {
  const child = await spawnGateway(script, settings);
  onTestFinished(() => child.kill());
  return child;
}

/** Sends a request of a customer to a process. A wrong credential counts as a failure. */
async function ask({ url }: GatewayProcess, { secret, apiKey }: Customer): Promise<string> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "own/a/b", messages: [{ role: "user", content: "Hello" }] }),
  });
  const text = await answer.text();
  return text.includes(`"content":"${apiKey}"`) ? `${answer.status}` : `${answer.status} ${text}`;
}

/** Sends a request of every customer to every process, a few at a time, and reports progress. */
function load(processes: readonly GatewayProcess[], customers: readonly Customer[]) {
  const requests = customers.flatMap((customer) =>
    processes.map((process) => ({ customer, process })),
  );
  const quarter = Promise.withResolvers<void>();
  const answers: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = requests.shift(); next; next = requests.shift()) {
      answers.push(await ask(next.process, next.customer));
      if (answers.length * 4 >= customers.length * processes.length) quarter.resolve();
    }
  };
  const done = Promise.all(Array.from({ length: 8 }, worker)).then(() => answers);
  return { quarter: quarter.promise, done };
}

it.each(places)(
  "S36 two processes on %s reseal under load and drop the old key without a failed request",
  async (_name, open) => {
    const upstream = await openUpstream();
    const place = open();
    const under = (current: string, keys: Readonly<Record<string, string>>) => ({
      place,
      upstream: upstream.url,
      secrets: { current, keys },
    });
    const customers = await createCustomers(under("k1", { k1 }));
    const [first, second] = await Promise.all([
      start(under("k2", { k1, k2 })),
      start(under("k2", { k1, k2 })),
    ]);
    const during = load([first, second], customers);
    await during.quarter;
    const resealings = await Promise.all([first.command("reseal"), second.command("reseal")]);
    const answers = await during.done;
    expect(new Set(answers)).toEqual(new Set(["200"]));
    expect(answers).toHaveLength(2 * organizations);
    expect(resealings).toMatchObject([{ failed: 0 }, { failed: 0 }]);
    const total = resealings.reduce<number>((sum, one) => sum + Object(one).resealed, 0);
    expect(total).toBe(organizations);

    await first.stop();
    const third = await start(under("k2", { k2 }));
    const after = await load([second, third], customers).done;
    expect(new Set(after)).toEqual(new Set(["200"]));
    const kept = await administer(under("k2", { k2 }), async ({ connections }) => {
      const all = customers.map(({ organizationId }) =>
        connections.get({ organizationId, gateway: "own" }),
      );
      return Promise.all(all);
    });
    expect(new Set(kept.map(({ keyId }) => keyId))).toEqual(new Set(["k2"]));
  },
);
