/** Measures a governed request in counts, which other work on the machine does not change. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { startPostgres } from "@tollgate/testing/postgres";
import type { CountingOrder, Counts } from "./counts/counted-gateway.ts";

/** Counts of one store, each for one request, Step or streamed event. */
export interface RequestCounts {
  readonly statementsAlone: number;
  readonly statementsInGroups: number;
  readonly promises: number;
  readonly promisesPerEvent: number;
  /** NaN if garbage was collected during the request. */
  readonly allocatedBytes: number;
  readonly promotedBytes: number;
  /** Opened to the upstream by all warm requests together. */
  readonly sockets: number;
  readonly writtenBytes: number;
}

/** The number of requests in a group. */
const group = 32;
const groups = 8;
/** Groups before anything is counted: V8 allocates more for code that it has not compiled yet. PostgreSQL's aren't counted. */
const warmUpGroups = { memory: 60, sqlite: 40, postgres: 8 };
const alone = 300;
/** The number of events in the shorter stream, and how many more the longer one has. */
const events = { short: 20, more: 100 };
/** Prevents automatic collections while bytes are counted. In megabytes. */
const youngSpace = ["--min-semi-space-size=128", "--max-semi-space-size=128"];
const question = "How do tides come about, and why are there two of them a day? ".repeat(15);
const answer = "The moon pulls the near side more than the centre, and the far side less. ".repeat(
  11,
);

/** Serves a gateway in a separate process, sends it requests over HTTP, and counts. Takes a few seconds. */
export async function countRequests(
  store: "memory" | "sqlite" | "postgres",
): Promise<RequestCounts> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-counts-"));
  const server = store === "postgres" ? await startPostgres() : null;
  const upstream = await startUpstream();
  const child = fork(
    fileURLToPath(new URL("./counts/counted-gateway.ts", import.meta.url)),
    [store, upstream.url, server?.url ?? join(folder, "counts.db")],
    { execArgv: ["--conditions=tollgate-source", "--expose-gc", ...youngSpace] },
  );
  const agent = new Agent({ keepAlive: true, maxSockets: group });
  try {
    const { url, secret } = await nextMessage<{ url: string; secret: string }>(child);
    const client = createClient({ url, secret, agent, upstream });
    return await countAll(child, client, store);
  } finally {
    agent.destroy();
    upstream.close();
    const ended = once(child, "exit");
    child.disconnect();
    await ended;
    await server?.stop();
    rmSync(folder, { recursive: true });
  }
}

type Client = ReturnType<typeof createClient>;
type Upstream = Awaited<ReturnType<typeof startUpstream>>;

async function countAll(
  child: ChildProcess,
  client: Client,
  store: keyof typeof warmUpGroups,
): Promise<RequestCounts> {
  await client.inGroups(warmUpGroups[store]);
  for (let streams = 0; streams < 3; streams += 1) await client.stream(events.short);

  const promises = { promises: true };
  const one = await counting(child, () => client.oneByOne(alone), promises);
  const inStream = async (events: number): Promise<number> => {
    const streams: number[] = [];
    while (streams.length < 3)
      streams.push((await counting(child, () => client.stream(events), promises)).promises);
    // Work on a timer, such as renewing a lease, adds to some.
    return Math.min(...streams);
  };
  const short = await inStream(events.short);
  const long = await inStream(events.short + events.more);
  // Data that V8 keeps about code compiled meanwhile adds to some counts. The lowest has the least of it.
  const together: Counts[] = [];
  const collected: Counts[] = [];
  for (let counts = 0; counts < 3; counts += 1) {
    together.push(await counting(child, () => client.inGroups(groups)));
    collected.push(
      await counting(child, () =>
        // One collection while each group is in flight: only objects that outlive their group survive two.
        client.inGroups(groups, () => ask(child, { order: "collect" })),
      ),
    );
  }
  const lowest = (of: readonly Counts[], count: (counts: Counts) => number): number =>
    Math.min(...of.map(count)) / (group * groups);
  const statements = together.reduce((sum, counts) => sum + counts.statements, 0);
  return {
    statementsAlone: one.statements / alone,
    statementsInGroups: statements / (together.length * group * groups),
    promises: one.promises / alone,
    promisesPerEvent: (long - short) / events.more,
    allocatedBytes: lowest(together, ({ collections, allocated }) =>
      collections === 0 ? allocated : Number.NaN,
    ),
    promotedBytes: lowest(collected, ({ promoted }) => promoted),
    sockets: [one, ...together].reduce((sum, { sockets }) => sum + sockets, 0),
    writtenBytes: one.written / alone,
  };
}

async function counting(
  child: ChildProcess,
  work: () => Promise<void>,
  { promises = false } = {},
): Promise<Counts> {
  await ask(child, { order: "start", promises });
  await work();
  return ask<Counts>(child, { order: "report" });
}

function createClient({
  url,
  secret,
  agent,
  upstream,
}: {
  readonly url: string;
  readonly secret: string;
  readonly agent: Agent;
  readonly upstream: Upstream;
}) {
  let requests = 0;
  function send(stream: boolean): Promise<IncomingMessage> {
    requests += 1;
    const outgoing = request(`${url}/v1/chat/completions`, {
      method: "POST",
      agent,
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    });
    const messages = [{ role: "user", content: `${requests}: ${question}` }];
    outgoing.end(
      JSON.stringify({
        model: "up/a/model",
        messages,
        ...(stream && { stream, stream_options: { include_usage: true } }),
      }),
    );
    return new Promise((resolve, reject) =>
      outgoing.once("response", resolve).once("error", reject),
    );
  }
  async function plain(): Promise<void> {
    const incoming = await send(false);
    const body = await text(incoming);
    if (incoming.statusCode !== 200)
      throw new Error(`Unexpected status ${incoming.statusCode}: ${body}`);
  }
  return {
    async oneByOne(count: number): Promise<void> {
      for (let sent = 0; sent < count; sent += 1) await plain();
    },
    /** All requests of a group reach the upstream before it answers the first. */
    async inGroups(count: number, whileHeld = async (): Promise<unknown> => null): Promise<void> {
      for (let sent = 0; sent < count; sent += 1) {
        const held = upstream.hold(group);
        const answers = Array.from({ length: group }, plain);
        await held;
        await whileHeld();
        upstream.release();
        await Promise.all(answers);
      }
    },
    /** Every event arrives before the upstream sends the next one. */
    async stream(count: number): Promise<void> {
      const incoming = await send(true);
      let received = "";
      incoming.setEncoding("utf8").on("data", (chunk: string) => {
        received += chunk;
        if (received.includes(upstream.awaited())) upstream.next();
      });
      upstream.say(count);
      await once(incoming, "end");
      if (!received.includes("[DONE]")) throw new Error(`The stream has no end: ${received}`);
    },
  };
}

/** An upstream in this process, so its work is not counted. */
async function startUpstream() {
  const held: ServerResponse[] = [];
  let wanted = 0;
  let full = Promise.withResolvers<void>();
  let streaming: ServerResponse | null = null;
  let [said, toSay] = [0, 0];

  const server = createServer(async (incoming, outgoing) => {
    const body = await text(incoming);
    if (body.includes('"stream":true')) return startStream(outgoing);
    if (wanted === 0) return answerPlainly(outgoing);
    held.push(outgoing);
    if (held.length === wanted) full.resolve();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;

  function startStream(outgoing: ServerResponse): void {
    outgoing.writeHead(200, { "content-type": "text/event-stream" });
    outgoing.write(chunk({ role: "assistant", content: "" }));
    streaming = outgoing;
    [said, toSay] = [0, Number.POSITIVE_INFINITY];
    next();
  }
  function next(): void {
    if (said < toSay) {
      said += 1;
      streaming?.write(chunk({ content: `word ${said};` }));
      return;
    }
    streaming?.write(chunk({}, "stop"));
    streaming?.end(`data: ${JSON.stringify({ ...head, choices: [], usage })}\n\ndata: [DONE]\n\n`);
    streaming = null;
    said = -1;
  }
  return {
    url: `http://127.0.0.1:${port}/v1`,
    /** Holds requests until they are released. Resolves when this number of requests is held. */
    hold(count: number): Promise<void> {
      wanted = count;
      full = Promise.withResolvers<void>();
      return full.promise;
    },
    release(): void {
      wanted = 0;
      for (const outgoing of held.splice(0)) answerPlainly(outgoing);
    },
    awaited: () => `word ${said};`,
    next,
    say(count: number): void {
      toSay = count;
    },
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "a/model" };
const usage = { prompt_tokens: 260, completion_tokens: 190, total_tokens: 450 };

function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ ...head, choices, usage: null })}\n\n`;
}

function answerPlainly(outgoing: ServerResponse): void {
  const choices = [
    { index: 0, message: { role: "assistant", content: answer }, finish_reason: "stop" },
  ];
  const body = JSON.stringify({ ...head, object: "chat.completion", choices, usage });
  outgoing.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  outgoing.end(body);
}

function ask<Answer>(child: ChildProcess, order: CountingOrder): Promise<Answer> {
  const answer = nextMessage<Answer>(child);
  child.send(order);
  return answer;
}

/** Messages are not checked: both ends of the channel are in this package. */
function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`The gateway exited with ${code}.`));
    child.once("exit", onExit);
    child.once("message", (message: Message) => {
      child.off("exit", onExit);
      resolve(message);
    });
  });
}
