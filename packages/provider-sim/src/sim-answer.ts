import type {
  CompletionRequest,
  FinishReason,
  FunctionTool,
  Message,
  UsageReport,
} from "@tollgate/core/provider";
import { jsonSample } from "./json-sample.ts";

/** An answer of the built-in model: text or the arguments of a tool call, as words. */
export interface SimAnswer {
  readonly words: readonly string[];
  readonly toolCall: { readonly id: string; readonly name: string } | null;
  readonly finishReason: FinishReason;
}

/** The maximum number of words of the user's message in the answer. */
const summaryWords = 60;

/** Returns the answer to a request. Equal requests have equal answers. */
export function simAnswer(request: CompletionRequest): SimAnswer {
  const userText = lastUserText(request.messages);
  const tool = toolToCall(request, userText);
  const full = words(
    tool ? JSON.stringify(jsonSample(tool.parameters, userText)) : answerText(request, userText),
  );
  const maxWords = request.maxOutputTokens ?? full.length;
  return {
    words: full.slice(0, maxWords),
    toolCall: tool && { id: `call_sim_${request.messages.length}`, name: tool.name },
    finishReason: full.length > maxWords ? "length" : tool ? "tool_calls" : "stop",
  };
}

/** Returns the usage of an answer. This model's tokens are words. */
export function usageOf(request: CompletionRequest, answer: SimAnswer): UsageReport {
  const prompt = request.messages.map((message) => words(textOf(message)).length + 3);
  return {
    promptTokens: prompt.reduce((sum, count) => sum + count, 0),
    completionTokens: answer.words.length + (answer.toolCall ? 1 : 0),
  };
}

function answerText(request: CompletionRequest, userText: string): string {
  const { responseFormat, stop = [] } = request;
  if (responseFormat?.type === "json_schema")
    return JSON.stringify(jsonSample(responseFormat.schema, userText));
  if (responseFormat?.type === "json_object") return JSON.stringify({ echo: summaryOf(userText) });
  return [stop].flat().reduce(cutAt, echoAnswer(request.messages, userText));
}

function echoAnswer(messages: readonly Message[], userText: string): string {
  const results = toolResults(messages);
  if (results.length > 0) return `The tool answered: ${summaryOf(results.join(" "))}`;
  return userText === "" ? "You have not said anything yet." : `You said: ${summaryOf(userText)}`;
}

/** Returns the tool to call: the required one, or one that the user mentions, unless the request has its result. */
function toolToCall(request: CompletionRequest, userText: string): FunctionTool | null {
  const { tools = [], toolChoice = "auto", messages } = request;
  if (typeof toolChoice === "object")
    return tools.find((tool) => tool.name === toolChoice.name) ?? null;
  if (toolChoice === "none" || (toolChoice === "auto" && toolResults(messages).length > 0))
    return null;
  const mentioned = tools.find((tool) => mentions(userText, tool.name));
  return mentioned ?? (toolChoice === "required" ? (tools[0] ?? null) : null);
}

const commonVerbs = new Set(["get", "set", "list", "find", "fetch", "look", "make", "tool"]);

/** Whether a text mentions a tool's name, or a significant word of it: "weather" matches `get_weather`. */
function mentions(text: string, name: string): boolean {
  const words = new Set(text.toLowerCase().match(/[\p{L}\p{N}_-]+/gu));
  const parts = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  const significant = parts.split(/[\s_-]+/).filter((part) => part.length > 2);
  return (
    words.has(name.toLowerCase()) ||
    significant.some((part) => words.has(part) && !commonVerbs.has(part))
  );
}

/** Returns the tool results since the last message of the user or the model. */
function toolResults(messages: readonly Message[]): readonly string[] {
  const from = messages.findLastIndex((message) => message.role !== "tool") + 1;
  return messages.slice(from).map(textOf);
}

function lastUserText(messages: readonly Message[]): string {
  const last = messages.findLast((message) => message.role === "user");
  return last ? textOf(last) : "";
}

function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  const parts = (content ?? []).map((part) => {
    if (part.type === "text") return part.text;
    return part.type === "refusal" ? part.refusal : "[image]";
  });
  return parts.join(" ");
}

function summaryOf(text: string): string {
  const all = words(text.trim());
  return all.length <= summaryWords
    ? all.join("")
    : `${all.slice(0, summaryWords).join("").trimEnd()} …`;
}

function cutAt(text: string, stop: string): string {
  const at = text.indexOf(stop);
  return at < 0 ? text : text.slice(0, at);
}

/** Splits a text into words, each with the space before it. */
function words(text: string): readonly string[] {
  return text.match(/\s+\S*|\S+/gu) ?? [];
}
