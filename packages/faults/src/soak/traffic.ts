import { pick, type Random } from "../fuzz/grammar.ts";
import { decisionOfWhole, type ReceivedAnswer, receive, referenceIn } from "../histories/ask.ts";
import { canariesIn, type Tenant } from "./tenants.ts";

/** Clients of several tenants that send every kind of request. */
export interface Traffic {
  /** How often each kind of request was sent, and each status was received. */
  readonly counts: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
  /** The decisions of the Steps whose answers arrived whole, by organization. */
  readonly acknowledged: ReadonlyMap<string, ReadonlySet<string>>;
  /** Sends one conversation of a random tenant to a random process. */
  play(): Promise<void>;
}

const model = "up/vendor/model";
const tools = {
  chat: [{ type: "function", function: { name: "get_weather" } }],
  responses: [{ type: "function", name: "get_weather" }],
  messages: [{ name: "get_weather", input_schema: { type: "object" } }],
};
/** The path of every endpoint, with a body that says something and asks for a stream where there are some. */
type Endpoint = readonly [path: string, bodyOf: (to: Sent) => object];
const endpoints: readonly [Endpoint, ...Endpoint[]] = [
  ["chat/completions", (to: Sent) => ({ stream: true, messages: [user(to)] })],
  ["responses", (to: Sent) => ({ stream: true, input: user(to).content })],
  ["messages", (to: Sent) => ({ stream: true, messages: [user(to)], max_tokens: 64 })],
  ["embeddings", (to: Sent) => ({ input: user(to).content })],
];
const badBodies = [
  "",
  "{",
  "[]",
  '{"model":1}',
  '{"model":"up/vendor/model","messages":[]}',
  `{"model":"up/vendor/model","messages":[{"role":"user","content":"x"}],"unknown":1}`,
  `${"[".repeat(500)}`,
] as const;
/** How long a client waits for a whole answer. */
const maxAnswerMs = 30_000;
const statusesOfFaults = new Set([0, 200, 429, 500, 502, 503]);

interface Sent {
  readonly tenant: Tenant;
  readonly secret: string;
  readonly url: string;
}

/** `urls` are the addresses of the processes that run at the moment. */
export function createTraffic(
  tenants: readonly [Tenant, ...(readonly Tenant[])],
  urls: () => readonly [string, ...(readonly string[])],
  random: Random,
): Traffic {
  const counts: Record<string, number> = {};
  const problems: string[] = [];
  const acknowledged = new Map<string, Set<string>>(
    tenants.map(({ organizationId }) => [organizationId, new Set()]),
  );
  const responses = new Map<string, string>();
  const count = (name: string): void => {
    counts[name] = (counts[name] ?? 0) + 1;
  };

  /** Sends a request. An answer that breaks off has status 0 or ends with its reason. */
  async function send(to: Sent, path: string, init: RequestInit = {}): Promise<ReceivedAnswer> {
    const signal = init.signal ?? AbortSignal.timeout(maxAnswerMs);
    const headers = { authorization: `Bearer ${to.secret}`, "content-type": "application/json" };
    const answer = await fetch(`${to.url}/v1/${path}`, { ...init, headers, signal }).then(
      receive,
      brokenOff,
    );
    count(`status ${answer.status}`);
    const foreign = canariesIn(answer.body).filter(
      (organizationId) => organizationId !== to.tenant.organizationId,
    );
    if (foreign.length > 0)
      problems.push(`an answer to ${to.tenant.organizationId} contains data of ${foreign}`);
    if (answer.body.includes(to.secret)) problems.push("an answer contains the caller's secret");
    return answer;
  }

  async function post(
    to: Sent,
    path: string,
    body: object,
    signal?: AbortSignal,
  ): Promise<ReceivedAnswer> {
    const answer = await send(to, path, {
      method: "POST",
      body: JSON.stringify({ model, ...body }),
      ...(signal && { signal }),
    });
    if (!statusesOfFaults.has(answer.status))
      problems.push(`${path}: ${answer.status} ${answer.body}`);
    const decision = decisionOfWhole(answer);
    if (decision !== null) acknowledged.get(to.tenant.organizationId)?.add(decision);
    return answer;
  }

  const scenarios: Scenarios = {
    chat: (to, stream) => post(to, "chat/completions", { stream, messages: [user(to)] }),
    async conversation(to, stream) {
      const messages: unknown[] = [user(to)];
      for (let turn = 0; turn < 4; turn++) {
        const message = wholeAnswer(
          await post(to, "chat/completions", { stream, messages }),
        )?.message;
        if (!message) return;
        messages.push(message, user(to));
      }
    },
    async "tool loop"(to) {
      const first = await post(to, "chat/completions", { tools: tools.chat, messages: [user(to)] });
      const message = wholeAnswer(first)?.message;
      if (!message) return;
      const result = { role: "tool", tool_call_id: "call_1", content: "sunny" };
      await post(to, "chat/completions", {
        tools: tools.chat,
        messages: [user(to), message, result],
      });
    },
    async "chain of responses"(to, stream) {
      let previous: string | undefined;
      for (let turn = 0; turn < 3; turn++) {
        const body = {
          stream,
          input: user(to).content,
          ...(previous && { previous_response_id: previous }),
        };
        previous = wholeAnswer(await post(to, "responses", body))?.id;
        if (previous === undefined) return;
        responses.set(to.tenant.organizationId, previous);
      }
    },
    "responses with tools": (to, stream) =>
      post(to, "responses", { stream, input: user(to).content, tools: tools.responses }),
    ...scenariosOfOtherEndpoints(post),
    async "a client that leaves"(to) {
      const client = new AbortController();
      const timer = setTimeout(() => client.abort(), random() * 60);
      const [path, bodyOf] = pick(random, endpoints);
      await post(to, path, bodyOf(to), client.signal);
      clearTimeout(timer);
    },
    async "bad input"(to) {
      const [path] = pick(random, endpoints);
      const { status, body } = await send(to, path, {
        method: "POST",
        body: pick(random, badBodies),
      });
      if (![0, 400, 503].includes(status)) problems.push(`bad input: ${status} ${body}`);
    },
    async "another tenant's response"(to) {
      const [owner, id] = pick<readonly [string, string]>(random, [["", "resp_1"], ...responses]);
      const { status, body } = await send(to, `responses/${id}`);
      if (owner !== to.tenant.organizationId && ![0, 404, 503].includes(status))
        problems.push(`another tenant's response: ${status} ${body}`);
    },
  };

  return {
    counts,
    problems,
    acknowledged,
    async play() {
      const tenant = pick(random, tenants);
      const [name, scenario] = entryAt(scenarios, random);
      count(name);
      const secret = tenant.secrets[Math.floor(random() * tenant.secrets.length)] ?? "";
      await scenario({ tenant, secret, url: pick(random, urls()) }, random() < 0.5);
    },
  };
}

type Post = (to: Sent, path: string, body: object) => Promise<ReceivedAnswer>;
type Scenarios = Readonly<Record<string, (to: Sent, stream: boolean) => Promise<unknown>>>;

function scenariosOfOtherEndpoints(post: Post): Scenarios {
  return {
    async "a tool loop of Messages"(to, stream) {
      const asked = { max_tokens: 64, tools: tools.messages };
      const first = await post(to, "messages", { ...asked, messages: [user(to)] });
      const message = wholeAnswer(first)?.message;
      if (!message) return;
      const content = [{ type: "tool_result", tool_use_id: "call_1", content: "sunny" }];
      const messages = [user(to), message, { role: "user", content }];
      await post(to, "messages", { ...asked, stream, messages });
    },
    embeddings: (to) => post(to, "embeddings", { input: [user(to).content, user(to).content] }),
    "counted tokens": (to) => post(to, "messages/count_tokens", { messages: [user(to)] }),
  };
}

function entryAt<Value>(
  values: Readonly<Record<string, Value>>,
  random: Random,
): readonly [string, Value] {
  const [first, ...others] = Object.entries(values);
  if (first === undefined) throw new Error("The traffic has no scenarios.");
  return pick(random, [first, ...others]);
}

const user = ({ tenant }: Sent) => ({ role: "user", content: `Hello from ${tenant.canary}` });

function brokenOff(): ReceivedAnswer {
  return { status: 0, headers: [], body: "" };
}

/** The answer's id and message; null unless it arrived whole and without an error. */
function wholeAnswer(answer: ReceivedAnswer) {
  return decisionOfWhole(answer) === null ? null : referenceIn(answer);
}
