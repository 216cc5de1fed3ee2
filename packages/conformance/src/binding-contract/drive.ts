import type { Gateway, Mountable } from "@tollgate/core";
import {
  createTestGateway,
  type RawClient,
  rawClient,
  type TestGateway,
  type TestGatewayOptions,
} from "@tollgate/testing";
import { onTestFinished } from "vitest";
import type { Binding, Mounting } from "./binding.ts";

/** A gateway behind a binding, driven by a test. */
export interface DrivenGateway extends TestGateway {
  /** Where the host listens. */
  readonly url: string;
  /** Where the gateway is mounted: the URL and the prefix. */
  readonly mounted: string;
  readonly prefix: string;
  /** Calls a path below the mount with the test key. */
  call(path: string, init?: RequestInit): Promise<Response>;
  /** Posts JSON below the mount with the test key. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** A client that sends raw bytes, closed after the test. */
  rawClient(): Promise<RawClient>;
}

export const chatPath = "/v1/chat/completions";
export const responsesPath = "/v1/responses";
export const messagesPath = "/v1/messages";
export const embeddingsPath = "/v1/embeddings";
export const model = "test/tollgate/scripted";

/** The minimal valid body of each endpoint. */
export const bodies = {
  [chatPath]: (text = "Hello") => ({ model, messages: [{ role: "user", content: text }] }),
  [responsesPath]: (text = "Hello") => ({ model, input: text }),
  [messagesPath]: (text = "Hello") => ({
    model,
    max_tokens: 4_096,
    messages: [{ role: "user", content: text }],
  }),
  [embeddingsPath]: (text = "Hello") => ({ model, input: text }),
} as const;

/** The endpoints that hold conversations, whose answers may be streams. */
export const conversations = [chatPath, responsesPath, messagesPath] as const;
export const endpoints = [...conversations, embeddingsPath] as const;

/** The end of each stream. */
export const closing = {
  [chatPath]: "data: [DONE]",
  [responsesPath]: "response.completed",
  [messagesPath]: "message_stop",
} as const;

/** Serves a gateway through the binding until the test is over. */
export async function drive(
  { serve }: Binding,
  { prefix = "/ai", writeStall = 30_000 }: Partial<Mounting> = {},
  options: TestGatewayOptions = {},
  mounted: (gateway: Gateway) => Mountable = (gateway) => gateway,
): Promise<DrivenGateway> {
  const test = await createTestGateway(options);
  const { url, close } = await serve(mounted(test.gateway), { prefix, writeStall });
  const clients: RawClient[] = [];
  onTestFinished(async () => {
    for (const client of clients) client.reset();
    await close();
    await test.gateway.close();
  });
  const root = `${url}${prefix}`;
  const authorization = `Bearer ${test.key.secret}`;
  const call: DrivenGateway["call"] = (path, init = {}) =>
    fetch(`${root}${path}`, { ...init, headers: { authorization, ...init.headers } });
  return {
    ...test,
    url,
    mounted: root,
    prefix,
    call,
    post: (path, body, headers = {}) =>
      call(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    async rawClient() {
      const client = await rawClient(url);
      clients.push(client);
      return client;
    },
  };
}

/** The error of an answer in the gateway's format. Throws for any other answer. */
export async function errorOf(answer: Response): Promise<{ readonly code: unknown }> {
  const error = await anyErrorOf(answer);
  if ("code" in error) return error;
  throw new Error(`not an error of a gateway: ${JSON.stringify(error)}`);
}

/** The members of an error, in the order in which each endpoint sends them. */
export const errorMembers = {
  [chatPath]: ["message", "type", "param", "code"],
  [responsesPath]: ["message", "type", "param", "code"],
  [messagesPath]: ["type", "message"],
  [embeddingsPath]: ["message", "type", "param", "code"],
} as const;

/** The error of an answer of any endpoint. Throws for any other answer. */
export async function anyErrorOf(answer: Response): Promise<object> {
  const body: unknown = await answer.json();
  const error = typeof body === "object" && body !== null && "error" in body ? body.error : null;
  if (typeof error === "object" && error !== null && "message" in error) return error;
  throw new Error(`not an error of a gateway: ${JSON.stringify(body)}`);
}
