import { answerShapes, restoredShape } from "./answer-shapes.ts";
import { defaultLimits } from "./limits.ts";

/** The largest accepted request of one shape. */
export interface RequestShape {
  readonly name: string;
  readonly path: "/v1/chat/completions" | "/v1/responses" | "/v1/messages";
  /** A request that is sent before this one, which refers to its response or continues its Session. */
  readonly before?: () => string;
  /** `earlier` is the opaque part of the earlier response's id. */
  readonly body: (earlier: string) => string;
}

const { bodyBytes, imageBodyBytes, messages, tools, keys, stringBytes, values } = defaultLimits;
/** Space for the rest of the request. */
const frame = 4_096;
const text = bodyBytes - frame;

const chat = (name: string, members: () => object): RequestShape => ({
  name,
  path: "/v1/chat/completions",
  body: () => JSON.stringify({ model, ...members() }),
});
const inputOf = (items: readonly object[]): string => JSON.stringify({ model, input: items });
const responses = (name: string, input: () => readonly object[]): RequestShape => ({
  name: `responses: ${name}`,
  path: "/v1/responses",
  body: () => inputOf(input()),
});
const anthropic = (name: string, members: () => object): RequestShape => ({
  name: `messages: ${name}`,
  path: "/v1/messages",
  body: () => JSON.stringify({ model, max_tokens: 1_000, ...members() }),
});
const referring = (
  name: string,
  before: () => readonly object[],
  body: (earlier: string) => object,
): RequestShape => ({
  name: `responses: ${name}`,
  path: "/v1/responses",
  before: () => inputOf(before()),
  body: (earlier) => JSON.stringify({ model, ...body(earlier) }),
});

export const model = "up/vendor/fine";

const user = (content: unknown): object => ({ role: "user", content });
const times = <Value>(count: number, of: (index: number) => Value): readonly Value[] =>
  Array.from({ length: Math.floor(count) }, (_, index) => of(index));

/** A conversation in which the model called tools with these arguments, with this number of calls per message. */
function calling(all: readonly string[], perMessage: number): readonly object[] {
  const messages: object[] = [user("Hi")];
  for (let at = 0; at < all.length; at += perMessage) {
    const calls = all.slice(at, at + perMessage).map((written, index) => ({
      id: `call_${at + index}`,
      type: "function",
      function: { name: "f", arguments: written },
    }));
    messages.push({ role: "assistant", tool_calls: calls });
    for (const { id } of calls) messages.push({ role: "tool", tool_call_id: id, content: "" });
  }
  return messages;
}

/** The model whose answers contain the state that a later request gets back. */
const restoring = `up/vendor/shape-${Object.keys(answerShapes).indexOf(restoredShape)}`;

/** A call with a signature in the gateway's format, which has to be checked. */
const signedCall = (index: number): object => ({
  id: `call_${index}`,
  type: "function",
  function: { name: "f", arguments: "{}" },
  extra_content: {
    google: { thought_signature: `tg1:${"A".repeat(22)}:up%2Fvendor:${"s".repeat(1_500)}` },
  },
});
const toolUse = (index: number, given: object): object => ({
  type: "tool_use",
  id: `call_${index}`,
  name: "f",
  input: given,
});
const deep = (depth: number): string => `${"[".repeat(depth)}1${"]".repeat(depth)}`;
const wide = (width: number): object =>
  Object.fromEntries(times(width, (index) => [`k${index}`, { type: "string" }]));
const tableOfLongNumbers = (members: number): string =>
  `{${times(members, (index) => `"k${index}":1234567890123456789`).join(",")}}`;
const image = (bytes: number): object => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${"A".repeat(bytes)}` },
});
const imageItem = (): object => ({
  role: "user",
  content: [
    {
      type: "input_image",
      image_url: `data:image/png;base64,${"A".repeat(imageBodyBytes - frame)}`,
    },
  ],
});
/** As many calls as fit into the messages if every call has its answer. */
const calls = messages * 0.9;

export const requestShapes: readonly RequestShape[] = [
  chat("the most messages allowed", () => ({
    messages: times(messages, (index) => ({
      role: index % 2 === 0 ? "user" : "assistant",
      content: "x".repeat(text / messages - 40),
    })),
  })),
  chat("one huge text", () => ({ messages: [user("x".repeat(text))] })),
  chat("one huge text of line feeds", () => ({ messages: [user("\n".repeat(text / 2))] })),
  chat("one huge text beyond ASCII", () => ({ messages: [user("日".repeat(text / 3))] })),
  {
    ...chat("one huge text of escapes", () => ({})),
    body: () =>
      `{"model":"${model}","messages":[{"role":"user","content":"${"\\u65e5".repeat(text / 6)}"}]}`,
  },
  chat("many tool calls", () => ({
    messages: calling(
      times(calls, () => `{"a":"${"x".repeat(text / calls - 260)}"}`),
      100,
    ),
  })),
  chat("tool arguments of one long number", () => ({
    messages: calling(
      times(3, () => `{"a":1${"0".repeat(stringBytes - 100)}}`),
      3,
    ),
  })),
  chat("tool arguments of many values", () => ({
    messages: calling(
      times(3, () => `[${"1,".repeat(stringBytes / 2 - 100)}1]`),
      1,
    ),
  })),
  chat("tool arguments of many members, call by call", () => ({
    messages: calling(
      times(400, () => JSON.stringify(wide(250))),
      4,
    ),
  })),
  chat("tool arguments that nest deep", () => ({
    messages: calling(
      times(3, () => deep(stringBytes / 2 - 100)),
      3,
    ),
  })),
  chat("many parts", () => ({
    messages: [user(times(values / 3 - 100, () => ({ type: "text", text: "x" })))],
  })),
  chat("tool output of many parts", () => ({
    messages: [
      ...calling(["{}"], 1).slice(0, 2),
      {
        role: "tool",
        tool_call_id: "call_0",
        content: times(values / 3 - 100, () => ({ type: "text", text: "x" })),
      },
    ],
  })),
  chat("wide provider state", () => ({
    messages: times(4, () => [
      user("Hi"),
      {
        role: "assistant",
        content: "Hello",
        reasoning_details: times(values / 4 / 4 - 500, (index) => ({
          type: "reasoning.text",
          index,
          text: "",
        })),
      },
    ])
      .flat()
      .concat(user("Hi")),
  })),
  chat("the most signed tool calls allowed", () => ({
    messages: [
      user("Hi"),
      ...times(15, (message) => [
        {
          role: "assistant",
          tool_calls: times(tools, (index) => signedCall(message * tools + index)),
        },
        ...times(tools, (index) => ({
          role: "tool",
          tool_call_id: `call_${message * tools + index}`,
          content: "",
        })),
      ]).flat(),
    ],
  })),
  {
    ...chat("a tool call whose state is restored", () => ({
      model: restoring,
      messages: [
        user("Hi"),
        {
          role: "assistant",
          tool_calls: [
            { id: "call_0", type: "function", function: { name: "f", arguments: "{}" } },
          ],
        },
        { role: "tool", tool_call_id: "call_0", content: "" },
      ],
    })),
    before: () => JSON.stringify({ model: restoring, messages: [user("Hi")] }),
  },
  chat("wide messages of unknown members", () => ({
    messages: times(values / 200 - 20, () => ({
      ...user("Hi"),
      ...Object.fromEntries(times(196, (index) => [`unknown_${index}`, 1])),
    })),
  })),
  chat("many tools with wide schemas", () => ({
    messages: [user("Hi")],
    tools: times(tools, (index) => ({
      type: "function",
      function: {
        name: `f${index}`,
        parameters: { type: "object", properties: wide(keys), description: "x".repeat(16_000) },
      },
    })),
  })),
  chat("one huge image", () => ({
    messages: [user([image(imageBodyBytes - frame)])],
  })),
  chat("many images", () => ({
    messages: [user(times(30, () => image(imageBodyBytes / 30 - frame)))],
  })),
  responses("many items", () =>
    times(messages, (index) => ({
      type: "message",
      role: index % 2 === 0 ? "user" : "assistant",
      content: "x".repeat(text / messages - 60),
    })),
  ),
  responses("many function calls", () => [
    { type: "message", role: "user", content: "Hi" },
    ...times(messages / 2 - 1, (index) => [
      {
        type: "function_call",
        call_id: `call_${index}`,
        name: "f",
        arguments: `{"a":"${"x".repeat(1_500)}"}`,
      },
      { type: "function_call_output", call_id: `call_${index}`, output: "x".repeat(2_000) },
    ]).flat(),
  ]),
  responses("many reasoning items", () =>
    times(messages / 4, () => [
      { role: "user", content: "Hi" },
      { type: "reasoning", summary: [{ type: "summary_text", text: "x".repeat(7_000) }] },
      { role: "assistant", content: "Hello" },
    ]).flat(),
  ),
  responses("tool output of many parts", () => [
    { role: "user", content: "Hi" },
    { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
    {
      type: "function_call_output",
      call_id: "call_1",
      output: times(values / 3 - 100, () => ({ type: "input_text", text: "x" })),
    },
  ]),
  responses("one huge image, stored", () => [imageItem()]),
  referring(
    "continues after one huge image",
    () => [imageItem()],
    (earlier) => ({ previous_response_id: `resp_${earlier}`, input: "Hi" }),
  ),
  referring(
    "references to one huge text",
    () => [user("x".repeat(text))],
    (earlier) => ({ input: [{ type: "item_reference", id: `msg_${earlier}_i0` }] }),
  ),
  referring(
    "many references",
    () => times(messages / 2, () => user("x".repeat(3_000))),
    (earlier) => ({
      input: times(messages / 2, (index) => ({
        type: "item_reference",
        id: `msg_${earlier}_i${index}`,
      })),
    }),
  ),
  anthropic("many blocks", () => ({
    messages: [user(times(values / 3 - 100, () => ({ type: "text", text: "x" })))],
  })),
  anthropic("many blocks of instructions", () => ({
    system: times(values / 3 - 100, () => ({ type: "text", text: "x" })),
    messages: [user("Hi")],
  })),
  anthropic("many tool results", () => ({
    messages: [
      user("Hi"),
      { role: "assistant", content: times(1, () => toolUse(0, {})) },
      user(
        times(values / 4 - 100, () => ({
          type: "tool_result",
          tool_use_id: "call_0",
          content: "x",
        })),
      ),
    ],
  })),
  {
    ...anthropic("tool input of many values, with a long number", () => ({})),
    body: () =>
      JSON.stringify({
        model,
        max_tokens: 1_000,
        messages: [
          user("Hi"),
          { role: "assistant", content: [toolUse(0, { list: times(values - 200, () => 1) })] },
        ],
      }).replace("[1,", "[1234567890123456789,"),
  },
  {
    ...anthropic("tool input of the most members, with long numbers", () => ({})),
    body: () =>
      JSON.stringify({
        model,
        max_tokens: 1_000,
        messages: [user("Hi"), { role: "assistant", content: [toolUse(0, { a: "TABLE" })] }],
      }).replace('"TABLE"', tableOfLongNumbers(values - 200)),
  },
  anthropic("tool input of many members, call by call", () => ({
    messages: times(6, (message) => [
      user("Hi"),
      {
        role: "assistant",
        content: times(64, (at) => toolUse(message * 64 + at, wide(80))),
      },
    ]).flat(),
  })),
  anthropic("many thoughts without a valid seal", () => ({
    messages: [
      user("Hi"),
      {
        role: "assistant",
        content: times(20_000, () => ({
          type: "thinking",
          thinking: "",
          signature: `tg1:${"A".repeat(22)}:up%2Fvendor:s`,
        })),
      },
      user("Hi"),
    ],
  })),
  anthropic("many tools with examples", () => ({
    messages: [user("Hi")],
    tools: times(tools, (index) => ({
      name: `f${index}`,
      input_schema: { type: "object", properties: wide(100) },
      input_examples: times(8, () => wide(20)),
    })),
  })),
];
