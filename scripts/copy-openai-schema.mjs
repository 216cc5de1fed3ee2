// Copies the part of OpenAI's published schema that tests compare answers with:
//   node scripts/copy-openai-schema.mjs openapi.json 2026-08-21
// Unions keep only the kinds that the gateway sends, which makes the check stricter.
import { readFileSync, writeFileSync } from "node:fs";

const [source, date] = process.argv.slice(2);
if (source === undefined || date === undefined)
  throw new Error("Usage: node scripts/copy-openai-schema.mjs <openapi.json> <date of that file>");

const target = "packages/core/test/fixtures/openai-schema.json";
const prefix = "#/components/schemas/";
const roots = [
  "CreateChatCompletionResponse",
  "CreateChatCompletionStreamResponse",
  "Response",
  "ResponseItemList",
  "ResponseCreatedEvent",
  "ResponseInProgressEvent",
  "ResponseOutputItemAddedEvent",
  "ResponseOutputItemDoneEvent",
  "ResponseContentPartAddedEvent",
  "ResponseContentPartDoneEvent",
  "ResponseTextDeltaEvent",
  "ResponseTextDoneEvent",
  "ResponseOutputTextAnnotationAddedEvent",
  "ResponseRefusalDeltaEvent",
  "ResponseRefusalDoneEvent",
  "ResponseReasoningSummaryPartAddedEvent",
  "ResponseReasoningSummaryPartDoneEvent",
  "ResponseReasoningSummaryTextDeltaEvent",
  "ResponseReasoningSummaryTextDoneEvent",
  "ResponseFunctionCallArgumentsDeltaEvent",
  "ResponseFunctionCallArgumentsDoneEvent",
  "ResponseErrorEvent",
  "ResponseCompletedEvent",
  "ResponseIncompleteEvent",
  "ResponseFailedEvent",
];
const sent = {
  OutputItem: ["OutputMessage", "FunctionToolCall", "ReasoningItem"],
  ItemResource: [
    "InputMessageResource",
    "OutputMessage",
    "FunctionToolCallResource",
    "FunctionToolCallOutputResource",
    "ReasoningItem",
  ],
  Tool: ["FunctionTool"],
  ToolChoiceParam: ["ToolChoiceOptions", "ToolChoiceFunction"],
  InputItem: ["EasyInputMessage"],
  Annotation: ["UrlCitationBody"],
};
const documentary = ["description", "title", "example", "deprecated", "discriminator"];
/** Marks a value that may be null, in OpenAPI before version 3.1. */
const nullable = "nullable";

const { schemas } = JSON.parse(readFileSync(source, "utf8")).components;
const definitions = {};
for (const name of roots) copy(name);
const ordered = Object.fromEntries(
  Object.entries(definitions).sort(([a], [b]) => (a < b ? -1 : 1)),
);
const $comment = `openai/openai-openapi, ${date}: objects, chunks and events, MIT`;
writeFileSync(target, `${JSON.stringify({ $comment, $defs: ordered }, null, 2)}\n`);

function copy(name) {
  if (name in definitions) return;
  const schema = schemas[name];
  if (schema === undefined) throw new Error(`The source has no schema ${name}.`);
  definitions[name] = null;
  definitions[name] = plain(name in sent ? cut(schema, sent[name]) : schema);
}

function cut(schema, kept) {
  const union = "oneOf" in schema ? "oneOf" : "anyOf";
  const members = schema[union].filter(({ $ref }) => kept.includes($ref?.slice(prefix.length)));
  if (members.length !== kept.length) throw new Error(`The source lacks some of ${kept}.`);
  return { [union]: members };
}

/** The schema without documentation, and with references inside the copy. */
function plain(schema) {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([key]) => key !== nullable && !key.startsWith("x-") && !documentary.includes(key),
  );
  const copied = Object.fromEntries(kept.map(([key, value]) => [key, member(key, value)]));
  return schema[nullable] === true ? { anyOf: [copied, { type: "null" }] } : copied;
}

function member(key, value) {
  if (key === "$ref") return reference(value);
  if (key !== "properties") return plain(value);
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, plain(schema)]));
}

function reference(given) {
  if (!given.startsWith(prefix)) throw new Error(`Cannot follow the reference ${given}.`);
  const name = given.slice(prefix.length);
  copy(name);
  return `#/$defs/${name}`;
}
