import { data, done, finish, head, usage } from "../upstream-bytes.ts";
import { defaultLimits } from "./limits.ts";

/** The largest accepted answer of one shape, or one that exceeds the limit, in pieces. */
export interface AnswerShape {
  readonly stream: boolean;
  /** The gateway's status: 502 for an answer that exceeds the limit. */
  readonly status: number;
  /** Whether it exceeds the limit of content that the AI SDK omits: then the gateway answers with the rest. */
  readonly isLeftOutByAiSdk?: boolean;
  readonly pieces: () => Iterable<string>;
}

const { answerParts, depth, tools, upstreamBytes, upstreamEventBytes, values } = defaultLimits;
const streamHead = head("content-type: text/event-stream", "connection: close");
const plainHead = head("content-type: application/json", "connection: close");
const frame = 4_096;

const delta = (members: object): string => data({ choices: [{ index: 0, delta: members }] });
const nested = (levels: number): string => `${"[".repeat(levels)}1${"]".repeat(levels)}`;

/** A stream of this many pieces, in reads of a usual size, with a regular end. */
function* stream(count: number, piece: (index: number) => string): Generator<string> {
  yield streamHead;
  let read = "";
  for (let index = 0; index < count; index++) {
    read += piece(index);
    if (read.length < 65_536) continue;
    yield read;
    read = "";
  }
  yield read + finish + usage(1, 2) + done;
}

const streamed = (count: number, piece: (index: number) => string, status = 200): AnswerShape => ({
  stream: true,
  status,
  pieces: () => stream(count, piece),
});

const plain = (message: () => string, logprobs = () => "null", status = 200): AnswerShape => ({
  stream: false,
  status,
  pieces: () => [
    plainHead,
    `{"choices":[{"index":0,"message":${message()},"logprobs":${logprobs()},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
  ],
});

const tiny = delta({ content: "x" });
const eventOf = (member: string): string =>
  delta({ [member]: "x".repeat(upstreamEventBytes - frame) });
const call = (index: number, written: string): object => ({
  index,
  id: `call_${index}`,
  function: { name: "f", arguments: written },
});
/** A text of this many escaped line feeds. */
const escaped = (count: number): string => JSON.stringify({ a: "\n".repeat(count) });
const table = (members: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, at) => [`k${at}`, at])));
/** A tool call with the most state that is kept for it. */
export const restoredShape = "plain: a tool call with the most values of state";

const signedCall = (index: number): object => ({
  ...call(index, "{}"),
  extra_content: { google: { thought_signature: "s".repeat(3_000) } },
});
/** The number of values that the state of one message may have, including the objects and lists around them. */
const maxStateValues = 65_536;
const entries = (count: number, first: number): readonly object[] =>
  Array.from({ length: count }, (_, index) => ({ index: first + index, text: "" }));
const token = `{"token":"abc","logprob":-1.25,"bytes":[97,98,99]}`;
const logprob = `{"token":"abc","logprob":-1.25,"bytes":[97,98,99],"top_logprobs":[${Array(20).fill(token).join(",")}]}`;
const logprobs = (bytes: number): string =>
  `{"content":[${Array(Math.floor(bytes / (logprob.length + 1)))
    .fill(logprob)
    .join(",")}],"refusal":null}`;
const rawDelta = (members: string): string =>
  `data: {"choices":[{"index":0,"delta":{"content":"a"},${members}}]}\n\n`;

/** The bytes allowed for one answer, in one body or as the sum of its text. */
const whole = defaultLimits.answerBytes - frame;

export const answerShapes: Readonly<Record<string, AnswerShape>> = {
  "a million tiny events": streamed(
    Math.min(1_000_000, upstreamBytes / tiny.length - 10),
    () => tiny,
  ),
  "text in the largest events": streamed(whole / upstreamEventBytes, () => eventOf("content")),
  "more text than allowed": streamed(60, () => eventOf("content")),
  "reasoning in the largest events": streamed(whole / upstreamEventBytes, () =>
    eventOf("reasoning_content"),
  ),
  "line feeds in the largest events": streamed(8, () =>
    delta({ content: "\n".repeat(upstreamEventBytes / 2 - frame) }),
  ),
  "tool calls in many fragments": streamed(400_000, (index) =>
    delta({ tool_calls: [call(index % tools, "1,")] }),
  ),
  "tool calls with long numbers": streamed(4, (index) =>
    delta({ tool_calls: [call(index, `{"a":1${"0".repeat(upstreamEventBytes - frame)}}`)] }),
  ),
  "tool arguments of escapes in the largest events": streamed(2, (index) =>
    delta({ tool_calls: [call(index, escaped(upstreamEventBytes / 3 - frame))] }),
  ),
  "many parts after a call without an end": streamed(answerParts, (index) =>
    delta(
      index < 2
        ? { tool_calls: [call(0, `[${"1,".repeat(upstreamEventBytes / 2 - frame)}`)] }
        : { content: "x", refusal: "y" },
    ),
  ),
  "many parts": streamed(answerParts, (index) =>
    delta(
      index % 2 === 0 ? { content: "x".repeat(3_000) } : { reasoning_content: "y".repeat(3_000) },
    ),
  ),
  "deep log probabilities": streamed(4_000, () =>
    rawDelta(`"logprobs":{"content":${nested(depth - 2)}}`),
  ),
  "log probabilities that nest too deep": streamed(
    4,
    () => rawDelta(`"logprobs":{"content":${nested(upstreamEventBytes / 2 - frame)}}`),
    502,
  ),
  "log probabilities in the largest events": streamed(2, () =>
    rawDelta(`"logprobs":${logprobs(0.75 * upstreamEventBytes)}`),
  ),
  "plain: more log probabilities than allowed": plain(
    () => '{"content":"a"}',
    () => logprobs(whole),
    502,
  ),
  "an event of many values": streamed(
    4,
    () => rawDelta(`"logprobs":{"content":[${"[],".repeat(upstreamEventBytes / 3 - frame)}1]}`),
    502,
  ),
  "provider state with the most values allowed": streamed(1, () =>
    delta({ content: "a", reasoning_details: [{ data: Array(maxStateValues - 10).fill(1) }] }),
  ),
  "provider state in the most entries allowed": streamed(2, (event) =>
    delta({ content: "a", reasoning_details: entries(10_900, event * 10_900) }),
  ),
  "more provider state than allowed": streamed(4, () =>
    delta({ content: "a", reasoning_details: [{ data: Array(150_000).fill(1) }] }),
  ),
  "provider state in the most sealed texts": streamed(2, () =>
    delta({ content: "a", reasoning_details: [{ data: Array(2_048).fill("x") }] }),
  ),
  "provider state in more sealed texts than allowed": streamed(2, () =>
    delta({ content: "a", reasoning_details: [{ data: Array(36_000).fill("x") }] }),
  ),
  "large provider state": streamed(2, () =>
    delta({
      content: "a",
      provider_specific_fields: { text: "x".repeat(upstreamEventBytes - 3 * frame) },
    }),
  ),
  "plain: provider state with the most values allowed": plain(() =>
    JSON.stringify({ content: "a", reasoning_details: entries(21_800, 0) }),
  ),
  "plain: provider state in more sealed texts than allowed": {
    ...plain(
      () =>
        JSON.stringify({ content: "a", reasoning_details: [{ data: Array(36_000).fill("x") }] }),
      undefined,
      502,
    ),
    isLeftOutByAiSdk: true,
  },
  "plain: more provider state than allowed": {
    ...plain(
      () => JSON.stringify({ content: "a", reasoning_details: [{ data: Array(390_000).fill(1) }] }),
      undefined,
      502,
    ),
    isLeftOutByAiSdk: true,
  },
  "tool calls with signatures": streamed(1, () =>
    delta({ tool_calls: Array.from({ length: tools }, (_, index) => signedCall(index)) }),
  ),
  [restoredShape]: plain(() =>
    JSON.stringify({
      tool_calls: [call(0, "{}")],
      reasoning_details: [{ text: Array(maxStateValues - 10).fill(1) }],
    }),
  ),
  "plain: tool calls with signatures": plain(() =>
    JSON.stringify({ tool_calls: Array.from({ length: tools }, (_, index) => signedCall(index)) }),
  ),
  "plain: huge text": plain(() => JSON.stringify({ content: "x".repeat(whole) })),
  "plain: huge text of escapes": plain(() => `{"content":"${"\\u65e5".repeat(whole / 6)}"}`),
  "plain: huge reasoning": plain(() =>
    JSON.stringify({ content: "a", reasoning_content: "x".repeat(whole) }),
  ),
  "plain: many tool calls": plain(() =>
    JSON.stringify({
      tool_calls: Array.from({ length: tools }, (_, index) =>
        call(index, `["${"x".repeat(whole / tools - 200)}"]`),
      ),
    }),
  ),
  "plain: tool arguments of escapes": plain(() =>
    JSON.stringify({ tool_calls: [call(0, escaped(whole / 3))] }),
  ),
  "plain: tool arguments of the most members": plain(() =>
    JSON.stringify({ tool_calls: [call(0, table(0.49 * values))] }),
  ),
  "plain: more tool calls than allowed": plain(
    () =>
      JSON.stringify({
        tool_calls: Array.from({ length: whole / 80 }, (_, index) => call(index, "{}")),
      }),
    undefined,
    502,
  ),
  "plain: log probabilities": plain(
    () => '{"content":"a"}',
    () => logprobs(0.7 * whole),
  ),
  "plain: many values": plain(
    () => '{"content":"a"}',
    () => `{"content":[${"[],".repeat(whole / 3)}1]}`,
    502,
  ),
  "plain: many members": plain(
    () => '{"content":"a"}',
    () => `{${Array.from({ length: whole / 12 }, (_, index) => `"k${index}":1`).join(",")}}`,
    502,
  ),
};
