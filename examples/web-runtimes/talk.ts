import { equal, match, ok } from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { gateway } from "./gateway.ts";

const organizationId = "acme";
const maxWaitMs = 1_000;

/** Calls the served gateway without a key, plain, streamed, and as a client that leaves in the middle of a stream. */
export async function talk(url: string): Promise<void> {
  const { secret } = await gateway.keys.create({ organizationId, userId: "ada", label: "laptop" });
  const ask = asking(url);
  equal((await ask("tg_wrong", "Hello")).status, 401);
  match(await (await ask(secret, "Hello")).text(), /"You said: Hello"/);
  const stream = await ask(secret, "Hello", { stream: true });
  equal(stream.headers.get("content-type"), "text/event-stream; charset=utf-8");
  const pieces = await piecesOf(stream);
  match(pieces.join(""), /data: \[DONE\]\n\n$/);
  ok(pieces.length > 1, "the stream came in one piece");
  equal(await outcomes(), "completed, completed");
  console.log(`answered plainly, and as a stream in ${pieces.length} pieces`);
  await leave((signal) => ask(secret, "word ".repeat(500), { stream: true, signal }));
}

interface Wishes {
  readonly stream?: true;
  readonly signal?: AbortSignal;
}

const asking =
  (url: string) =>
  (key: string, content: string, { stream, signal }: Wishes = {}): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sim/tollgate/echo",
        messages: [{ role: "user", content }],
        stream: stream ?? false,
      }),
      signal: signal ?? null,
    });

async function leave(ask: (signal: AbortSignal) => Promise<Response>): Promise<void> {
  const client = new AbortController();
  const left = await ask(client.signal);
  await left.body?.getReader().read();
  client.abort();
  const before = performance.now();
  while (!(await outcomes()).includes("cancelled")) {
    if (performance.now() - before > maxWaitMs)
      throw new Error("The call continued without its client.");
    await wait(5);
  }
  console.log(`cancelled ${Math.ceil(performance.now() - before)} ms after its client left`);
}

async function piecesOf(answer: Response): Promise<readonly string[]> {
  const pieces: string[] = [];
  for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? [])
    pieces.push(piece);
  return pieces;
}

async function outcomes(): Promise<string> {
  const { data } = await gateway.steps.list({ organizationId });
  return data.map(({ outcome }) => outcome ?? "open").join(", ");
}
