import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { json as readJson } from "node:stream/consumers";

/** A provider's refusal of a request, with the body of its 400 answer. */
export class Refused extends Error {
  readonly body: unknown;

  constructor(reason: string, body: unknown) {
    super(reason);
    this.body = body;
  }
}

/** An answer of a scripted upstream: a body, or the raw events of a stream. */
export type ScriptedReply = { readonly json: unknown } | { readonly events: readonly string[] };

/** A scripted upstream on a loopback socket. */
export interface LoopUpstream {
  readonly url: string;
  /** Why it refused requests, oldest first. */
  refusals(): readonly string[];
  /** The number of requests it answered, including refused ones. */
  requests(): number;
  /** The state issued with a call, which must come back with it; undefined for a call without state. */
  stateOf(callId: string): string | undefined;
  stop(): Promise<void>;
}

/** Serves `answer` at `path`. Events are written one by one, so a client receives them in separate pieces. */
export async function serveUpstream(
  path: string,
  answer: (body: unknown) => ScriptedReply,
): Promise<Omit<LoopUpstream, "stateOf">> {
  const refusals: string[] = [];
  let requests = 0;
  const server = createServer(async (request, response) => {
    requests++;
    if (request.method !== "POST" || request.url !== path) {
      refusals.push(`${request.method} ${request.url}`);
      return send(response, 404, { error: { message: "Not found.", type: "not_found_error" } });
    }
    try {
      const reply = answer(await readJson(request));
      if ("json" in reply) return send(response, 200, reply.json);
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of reply.events) response.write(event);
      response.end();
    } catch (error) {
      const refused = error instanceof Refused ? error : new Refused(String(error), {});
      refusals.push(refused.message);
      send(response, 400, refused.body);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    refusals: () => refusals,
    requests: () => requests,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** Text in pieces of a few characters, none of which splits a character. */
export function pieces(text: string): readonly string[] {
  const characters = [...text];
  const count = Math.ceil(characters.length / 7);
  return Array.from({ length: count }, (_, at) => characters.slice(at * 7, at * 7 + 7).join(""));
}
