import type {
  CompletionRequest,
  FunctionTool,
  Json,
  Message,
  TextPart,
  TokenCount,
  ToolChoice,
} from "@tollgate/core/provider";
import {
  createBodyWriter,
  isObject,
  itemsOf,
  membersOf,
  textOf,
  type WriteRequest,
  type WrittenCall,
} from "@tollgate/provider-http";
import { rejected } from "./rejected.ts";
import { type ThinkingOptions, thinkingMembers } from "./thinking.ts";
import {
  contentBlock,
  isDivisible,
  type LaterInstructions,
  leadingOrMoved,
  marked,
  partsOf,
  turnElements,
} from "./turns.ts";

/** Creates the writer of requests to `/messages`. */
export function createRequestWriter(options: ThinkingOptions): WriteRequest {
  const writerFor = (later: LaterInstructions): WriteRequest =>
    createBodyWriter<WrittenCall>({
      start: (call) => bodyStart(call, later),
      elements: (messages) => turnElements(messages, later),
      end: (call) => bodyEnd(requestMembers(call, options)),
      isDivisible: (messages, count) => isDivisible(messages, count, later),
    });
  const write = { moved: writerFor("moved"), kept: writerFor("kept") };
  return (call) => write[laterInstructions(call.request, options)](call);
}

/** Creates the writer of requests to `/messages/count_tokens`: the same without what only an answer needs. */
export function createCountWriter(options: ThinkingOptions): (call: TokenCount) => string {
  return (call) => {
    const { request } = call;
    const members = {
      ...toolMembers(request),
      ...thinkingMembers(call, options),
      ...anthropicMembers(request),
    };
    const later = laterInstructions(request, options);
    const elements = turnElements(request.messages, later);
    return `${bodyStart(call, later)}${elements}${bodyEnd(members)}`;
  };
}

/** With this beta the API takes instructions at any place, which keeps the cache of what comes before them. */
const keepingBeta = "mid-conversation-system-2026-04-07";

function laterInstructions(
  { anthropic }: CompletionRequest,
  { betas = [] }: ThinkingOptions,
): LaterInstructions {
  const isKept = betas.includes(keepingBeta) || anthropic?.betas?.includes(keepingBeta) === true;
  return isKept ? "kept" : "moved";
}

function bodyStart(
  { upstreamName, request }: Pick<WrittenCall, "upstreamName" | "request">,
  later: LaterInstructions,
): string {
  const system = systemText(leadingOrMoved(request.messages, later));
  return `{"model":${JSON.stringify(upstreamName)},${system}"messages":[`;
}

function bodyEnd(members: object): string {
  const rest = JSON.stringify(members);
  return rest === "{}" ? "]}" : `],${rest.slice(1)}`;
}

type Instructions = Extract<Message, { role: "system" | "developer" }>;

/** Instructions as the system prompt. */
function systemText(messages: readonly Message[]): string {
  const instructions = messages.filter(
    (message): message is Instructions =>
      (message.role === "system" || message.role === "developer") &&
      partsOf(message.content).length > 0,
  );
  const [first, ...others] = instructions;
  if (first === undefined) return "";
  if (others.length === 0 && typeof first.content === "string" && first.state === undefined)
    return `"system":${JSON.stringify(first.content)},`;
  const blocks = instructions.flatMap(({ content, state }) =>
    marked(partsOf<TextPart>(content), state).map(contentBlock),
  );
  return `"system":[${blocks.join(",")}],`;
}

function requestMembers(call: WrittenCall, options: ThinkingOptions): object {
  const { request, outputCap, stream } = call;
  refuseUnsupported(request);
  const { temperature, topP, stop, user, serviceTier } = request;
  const max_tokens = request.maxOutputTokens ?? outputCap;
  return {
    max_tokens,
    ...(stream ? { stream } : {}),
    ...toolMembers(request),
    temperature: temperature === undefined ? undefined : Math.min(temperature, maxTemperature),
    // Newer models reject it next to a temperature, and 1 has no effect.
    top_p: topP === 1 && temperature !== undefined ? undefined : topP,
    top_k: request.topK,
    ...thinkingMembers(call, { ...options, max_tokens }),
    stop_sequences: stop === undefined ? undefined : [stop].flat(),
    metadata: user === undefined ? undefined : { user_id: user },
    service_tier: serviceTier === undefined ? undefined : tierToAsk(serviceTier),
    ...anthropicMembers(request),
  };
}

/** Other vendors allow up to 2. */
const maxTemperature = 1;

/** `auto` may be served as priority. The API can't be asked for any other tier by name. */
function tierToAsk(tier: string): string {
  return tier === "auto" || tier === "priority" ? "auto" : "standard_only";
}

function anthropicMembers({ anthropic }: CompletionRequest): object {
  return {
    cache_control: anthropic?.cacheControl,
    context_management: anthropic?.contextManagement,
  };
}

/** Whether the API may summarize the conversation: another call over the whole prompt, which no hold covers. */
function compacts({ anthropic }: CompletionRequest): boolean {
  const edits = membersOf(anthropic?.contextManagement)["edits"];
  return itemsOf(edits).some((edit) => textOf(membersOf(edit)["type"])?.startsWith("compact"));
}

/** Refuses what would change the form of the answer. Hints to the sampling are left out. */
function refuseUnsupported(request: CompletionRequest): void {
  const { logprobs, topLogprobs, logitBias, responseFormat } = request;
  if (compacts(request)) throw rejected("Compaction isn't supported.", "context_management");
  const refused = [
    logprobs === true && "logprobs",
    topLogprobs !== undefined && topLogprobs > 0 && "top_logprobs",
    logitBias !== undefined && Object.keys(logitBias).length > 0 && "logit_bias",
    responseFormat?.type === "json_object" && "response_format",
  ].find((name) => name !== false);
  if (refused !== undefined)
    throw rejected("The provider's models don't support this parameter.", refused);
}

/** The API rejects `tool_choice` without tools. */
function toolMembers({ tools, toolChoice, parallelToolCalls }: CompletionRequest): object {
  if (tools === undefined || tools.length === 0) return {};
  const choice = toolChoice ?? (parallelToolCalls === false ? ("auto" as const) : undefined);
  return {
    tools: tools.map(tool),
    tool_choice: choice && toolChoiceOf(choice, parallelToolCalls),
  };
}

const toolStateMembers = ["cache_control", "eager_input_streaming", "input_examples"] as const;

function tool({ name, description, parameters, strict, state }: FunctionTool): object {
  const own = Object.fromEntries(toolStateMembers.map((member) => [member, state?.fields[member]]));
  return {
    name,
    description,
    input_schema: schemaOf(parameters),
    strict: strict || undefined,
    ...own,
  };
}

/** The API requires a schema, and its type. */
function schemaOf(parameters: Json | undefined): object {
  if (parameters === undefined) return { type: "object", properties: {} };
  if (!isObject(parameters)) throw rejected("A tool's schema must be an object.", "tools");
  return parameters["type"] === undefined ? { type: "object", ...parameters } : parameters;
}

function toolChoiceOf(choice: ToolChoice, parallel: boolean | undefined): object {
  if (choice === "none") return { type: "none" };
  const one = parallel === false ? { disable_parallel_tool_use: true } : {};
  if (typeof choice === "object") return { type: "tool", name: choice.name, ...one };
  return { type: choice === "required" ? "any" : "auto", ...one };
}
