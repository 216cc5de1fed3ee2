import type { TestGateway } from "@tollgate/testing";
import { z } from "zod";

const item = z.looseObject({ id: z.string(), type: z.string(), status: z.string() });

const response = z.looseObject({
  id: z.string().startsWith("resp_"),
  object: z.literal("response"),
  status: z.enum(["completed", "incomplete"]),
  output: z.array(item),
  previous_response_id: z.string().nullable(),
  usage: z.looseObject({ input_tokens: z.number(), output_tokens: z.number() }),
  session_id: z.uuid(),
  turn_id: z.uuid(),
});

const event = z.looseObject({ type: z.string(), sequence_number: z.number() });
const itemList = z.strictObject({
  object: z.literal("list"),
  data: z.array(item),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});

/** The parts of a response object that tests read. */
export type ResponseObject = z.infer<typeof response>;
/** A page of input items. */
export type ItemList = z.infer<typeof itemList>;
export type StreamEvent = z.infer<typeof event>;

type Headers = Readonly<Record<string, string>>;

/** Requests to the Responses endpoints with one API key. */
export interface ResponsesCalls {
  /** `POST /v1/responses`, which may fail. Default: model `test/tollgate/scripted`, input `Hello`. */
  post(fields?: Readonly<Record<string, unknown>>, headers?: Headers): Promise<Response>;
  /** The same, but it must succeed. */
  create(fields?: Readonly<Record<string, unknown>>, headers?: Headers): Promise<ResponseObject>;
  get(id: string): Promise<Response>;
  remove(id: string): Promise<Response>;
  /** `query` starts with `?`. */
  inputItems(id: string, query?: string): Promise<Response>;
  /** Any method and path after `/v1/`. */
  ask(method: string, path: string, body?: string): Promise<Response>;
}

/** Requests to a gateway with an API key's secret. */
export function responsesOf(
  gateway: Pick<TestGateway["gateway"], "fetch">,
  secret: string,
): ResponsesCalls {
  const ask = (method: string, path: string, body?: string, headers: Headers = {}) =>
    gateway.fetch(`http://in-process/v1/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${secret}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
  const post: ResponsesCalls["post"] = (fields = {}, headers = {}) => {
    const asked = { model: "test/tollgate/scripted", input: "Hello", ...fields };
    return ask("POST", "responses", JSON.stringify(asked), headers);
  };
  return {
    post,
    create: async (fields, headers) => responseOf(post(fields, headers)),
    get: (id) => ask("GET", `responses/${id}`),
    remove: (id) => ask("DELETE", `responses/${id}`),
    inputItems: (id, query = "") => ask("GET", `responses/${id}/input_items${query}`),
    ask: (method, path, body) => ask(method, path, body),
  };
}

/** Reads a completed plain answer. */
export async function responseOf(answer: Response | Promise<Response>): Promise<ResponseObject> {
  return response.parse(await (await answer).json());
}

/** Reads a page of input items. */
export async function itemsOf(answer: Response | Promise<Response>): Promise<ItemList> {
  return itemList.parse(await (await answer).json());
}

/** Reads a streamed answer to its end: whole events, numbered from 0, each named as its data says. */
export async function eventsOf(
  answer: Response | Promise<Response>,
): Promise<readonly StreamEvent[]> {
  const text = await (await answer).text();
  if (!text.endsWith("\n\n")) throw new Error(`The stream ends inside an event: ${text}`);
  const blocks = text
    .slice(0, -2)
    .split("\n\n")
    .filter((block) => block !== ": ping");
  return blocks.map((block, index) => eventOf(block, index));
}

/** Reads one event of a stream, which must have this number. */
export function eventOf(block: string, index: number): StreamEvent {
  const [, name = "", data = ""] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
  const read = event.parse(JSON.parse(data));
  if (read.type !== name || read.sequence_number !== index)
    throw new Error(`Event ${index} is not what it says: ${block}`);
  return read;
}

/** The response in a stream's last event. */
export function lastResponse(events: readonly StreamEvent[]): ResponseObject {
  return response.parse(events.at(-1)?.["response"]);
}
