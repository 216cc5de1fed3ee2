import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../fuzz/grammar.ts";
import { done, finish, text, usage } from "../upstream-bytes.ts";
import { canariesIn } from "./tenants.ts";

/** An upstream that fails in many ways, and notices if the data of two tenants meet. */
export interface SoakUpstream {
  readonly url: string;
  readonly counts: { requests: number; faults: number };
  /** Requests that contained the canaries of several tenants, or of none. */
  readonly leaks: readonly string[];
  close(): Promise<void>;
}

const maxBodyBytes = 1_000_000;
const faultShare = 0.15;

export async function startSoakUpstream(random: Random): Promise<SoakUpstream> {
  const counts = { requests: 0, faults: 0 };
  const leaks: string[] = [];
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const body = await bodyOf(request);
    counts.requests++;
    const tenants = canariesIn(body);
    if (tenants.length !== 1) leaks.push(`a request upstream belongs to ${tenants.length} tenants`);
    const isFaulty = random() < faultShare;
    if (isFaulty) counts.faults++;
    if (isFaulty) await fail(response, random);
    else if (request.url === "/v1/embeddings") embed(response, body);
    else await answer(response, body, random);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The upstream has no port.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    counts,
    leaks,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const piece of request) {
    body += String(piece);
    if (body.length > maxBodyBytes)
      throw new Error("The gateway sent a request that is too large.");
  }
  return body;
}

const json = { "content-type": "application/json" };
const stream = { "content-type": "text/event-stream" };

/** Answers with one vector for each text. */
function embed(response: ServerResponse, body: string): void {
  const { input }: { readonly input: string | readonly string[] } = JSON.parse(body);
  const data = [input].flat().map((_, index) => ({ index, embedding: [0.5, index] }));
  response.writeHead(200, json);
  response.end(JSON.stringify({ data, usage: { prompt_tokens: 20, total_tokens: 20 } }));
}

/** Repeats the canary of the request, so an answer that reaches another tenant is noticed. */
async function answer(response: ServerResponse, body: string, random: Random): Promise<void> {
  const said = `Hello ${canariesIn(body).join(" ")}`;
  const callsTool = body.includes('"get_weather"') && !body.includes('"role":"tool"');
  const calls = [{ index: 0, id: "call_1", type: "function", function: tool }];
  if (!body.includes('"stream":true')) {
    const message = callsTool
      ? { role: "assistant", content: null, tool_calls: calls }
      : { role: "assistant", content: said };
    const finish_reason = callsTool ? "tool_calls" : "stop";
    const choices = [{ index: 0, message, finish_reason }];
    response.writeHead(200, json);
    response.end(
      JSON.stringify({ id: "up", choices, usage: { prompt_tokens: 20, completion_tokens: 9 } }),
    );
    return;
  }
  response.writeHead(200, stream);
  if (callsTool) {
    const choices = [{ index: 0, delta: { tool_calls: calls }, finish_reason: "tool_calls" }];
    response.end(`data: ${JSON.stringify({ choices })}\n\n${usage(20, 9)}${done}`);
    return;
  }
  const events = 1 + Math.floor(random() * 20);
  response.write(text(said));
  for (let event = 0; event < events && !response.closed; event++) {
    if (random() < 0.3) await pause(random() * 10);
    response.write(text(" more"));
  }
  response.end(finish + usage(20, 9) + done);
}

const tool = { name: "get_weather", arguments: '{"city":"Bern"}' };

async function fail(response: ServerResponse, random: Random): Promise<void> {
  const kind = Math.floor(random() * 7);
  if (kind < 2) {
    response.writeHead(kind === 0 ? 500 : 429, { ...json, "retry-after": "1" });
    response.end('{"error":{"message":"Busy."}}');
    return;
  }
  if (kind === 2) return void response.destroy();
  response.writeHead(200, kind === 3 ? json : stream);
  if (kind === 3) return void response.end('{"choices":');
  response.write(text("Half of"));
  await pause(random() * 20);
  if (kind === 4) response.end();
  else if (kind === 5) response.end("data: not JSON\n\n");
  else response.destroy();
}
