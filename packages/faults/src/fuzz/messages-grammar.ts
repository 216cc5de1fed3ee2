import { type Grammar, type Rules, rawByte, textGrammar } from "./grammar.ts";
import { answerRules, upstreamCredential } from "./wire-grammars.ts";

const stream = ["<head><blocks><end>", "<head><blocks><end>", "<blocks><end>", "<events>"] as const;

/** Values in events and in whole answers. */
const valueRules = {
  reason: ["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "no such reason", ""],
  usage: [
    '{"input_tokens":10,"output_tokens":5}',
    '{"input_tokens":<count>,"cache_read_input_tokens":<count>,"cache_creation_input_tokens":<count>,"output_tokens":<count>}',
    '{"input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":<count>,"ephemeral_1h_input_tokens":<count>},"output_tokens_details":{"thinking_tokens":<count>},"service_tier":<odd>}',
    "<odd>",
  ],
  count: ["5", "0", "-1", "1e30", "1.5", "null", '"7"', "9007199254740993"],
  error: [
    '{"type":"overloaded_error","message":"<message>"}',
    '{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}',
    '{"type":"<word>","message":"<message>"}',
    "<odd>",
  ],
  message: ["Busy.", `invalid x-api-key: ${upstreamCredential}`, "\\u001b[31mred\\u0000"],
  input: ["{}", '{"a":[1]}', "<odd>", `${"[".repeat(70)}${"]".repeat(70)}`],
  text: [
    "Hello",
    "é€😀",
    "\\ud83d",
    "\\ude00",
    "\\u0000",
    "\\n\\ndata: x\\n\\n",
    "",
    "<text><text>",
  ],
  word: ["a", "toolu_1", "", "\\u0000", "__proto__", "é"],
  odd: ["null", "1", '""', "[]", "{}", '{"__proto__":{"polluted":1}}', "[[[[]]]]", "not JSON", ""],
} as const satisfies Rules;

/** The events of Anthropic's Messages API, and the values in them. */
const messagesRules = {
  head: [
    'event: message_start\ndata: {"type":"message_start","message":{"id":"<word>","type":"message","role":"assistant","model":"<word>","content":[],"usage":<usage>}}\n\n',
    'event: message_start\ndata: {"type":"message_start","message":<odd>}\n\n',
    "",
  ],
  blocks: ["<block>", "<block><blocks>", "<block><block><blocks>", "<block><event><blocks>"],
  block: [
    '<begin>{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"<text>"}}<stop><begin>{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"<text>"}}<stop><close>',
    '<begin>{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"<word>","name":"<word>","input":<input>}}<stop><pieces><close>',
    '<begin>{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"<text>","signature":""}}<stop><thought><close>',
    '<begin>{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"<word>"}}<stop><close>',
    '<begin>{"type":"content_block_start","index":0,"content_block":{"type":"<word>"}}<stop><close>',
  ],
  begin: ["event: x\ndata: ", "data: ", "data:", ": a comment\n\ndata: "],
  stop: ["\n\n", "\n\n", "\r\n\r\n", "\r\r", "\n"],
  close: [
    '<begin>{"type":"content_block_stop","index":0}<stop>',
    '<begin>{"type":"content_block_stop","index":<index>}<stop>',
    "",
  ],
  pieces: [
    "",
    '<begin>{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"<json>"}}<stop><pieces>',
    '<begin>{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":<odd>}}<stop>',
  ],
  thought: [
    '<begin>{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"<word>"}}<stop>',
    '<begin>{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"<text>"}}<stop><thought>',
    "",
  ],
  events: ["<event>", "<event><events>", "<event><event><events>"],
  event: [
    'event: ping\ndata: {"type":"ping"}\n\n',
    '<begin>{"type":"content_block_start","index":<index>,"content_block":<odd>}<stop>',
    '<begin>{"type":"content_block_delta","index":<index>,"delta":<odd>}<stop>',
    '<begin>{"type":"message_delta","delta":<odd>,"usage":<usage>}<stop>',
    'event: error\ndata: {"type":"error","error":<error>}\n\n',
    "<begin><odd><stop>",
    `data: "${rawByte(0xff)}"\n\n`,
    'data: {"type":"content_block_start"',
  ],
  end: [
    '<begin>{"type":"message_delta","delta":{"stop_reason":"<reason>","stop_sequence":null},"usage":<usage>}<stop><begin>{"type":"message_stop"}<stop>',
    '<begin>{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"<text>"},"usage":<usage>}\n\n<begin>{"type":"message_stop"}\n\n',
    '<begin>{"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n',
    '<begin>{"type":"message_stop"}\n\n',
    '<begin>{"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n<begin>{"type":"message_stop"}\n\n<events>',
    "",
    rawByte(0xe2) + rawByte(0x82),
  ],
  index: ["0", "1", "-1", "1.5", "null", "1e30"],
  json: ["{}", '{\\"a\\":', "1}", "", "[[[", "\\u00e9", "null"],
  ...valueRules,
} as const satisfies Rules;

/** The bytes of an event stream of the Messages API. */
export const messagesStreamGrammar: Grammar = textGrammar({ start: stream, ...messagesRules });

/** Whole answers of the Messages API, and the parts of one. */
const wholeRules = {
  whole: [
    '{"id":"msg_1","type":"message","role":"assistant","model":"a","content":[{"type":"text","text":"<text>"}],"stop_reason":"end_turn","stop_sequence":null,"usage":<usage>}',
    '{"id":"<word>","type":"message","role":"assistant","model":"<word>","content":[<contents>],"stop_reason":"<reason>","usage":<usage>}',
    '{"content":[<contents>],"stop_reason":"<reason>"}',
    '{"content":<odd>,"stop_reason":<odd>,"usage":<usage>}',
    '{"type":"error","error":<error>}',
    `{"content":[{"type":"text","text":"${rawByte(0xff)}"}],"stop_reason":"end_turn"}`,
    "<odd>",
  ],
  contents: ["<content>", "<content>,<contents>", ""],
  content: [
    '{"type":"text","text":"<text>"}',
    '{"type":"tool_use","id":"<word>","name":"<word>","input":<input>}',
    '{"type":"thinking","thinking":"<text>","signature":"<word>"}',
    '{"type":"redacted_thinking","data":"<word>"}',
    '{"type":"<word>","text":<odd>}',
    '{"type":"tool_use","id":<odd>,"name":<odd>,"input":<input>}',
    "<odd>",
  ],
} as const satisfies Rules;

/** A whole answer as its reader receives it. */
export const messagesWholeGrammar: Grammar = textGrammar({
  start: ["<whole>"],
  ...valueRules,
  ...wholeRules,
});

/** A whole answer of an upstream that speaks the Messages API. */
export const messagesAnswerGrammar: Grammar = textGrammar({
  ...answerRules,
  stream,
  ...messagesRules,
  ...wholeRules,
});
