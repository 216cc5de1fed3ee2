import type { AnthropicOptions, CompletionRequest } from "../../domain/completion-request.ts";
import type { Limits } from "../../domain/limits.ts";
import type { Message, SystemMessage } from "../../domain/message.ts";
import type { DroppedFields } from "../../domain/step.ts";
import { requestMembers } from "../common-fields.ts";
import { beginReading } from "../dropped-fields.ts";
import type { KnownItems } from "../read.ts";
import { toolUse } from "../tools.ts";
import { messagesRequest } from "./schema.ts";

/** A call of the Messages endpoint: the request to the model, and the form of the answer. */
export interface MessagesCall {
  readonly model: string;
  readonly stream: boolean;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** The messages as the client grouped them: one group for each of its messages. */
  readonly groups: readonly (readonly Message[])[];
  /** The instructions of this request, which aren't part of the conversation; null for none. */
  readonly system: SystemMessage | null;
  readonly options: Omit<CompletionRequest, "messages">;
  /** Members dropped from its messages and tools, and those dropped from its messages alone. */
  readonly droppedFields: DroppedFields;
  readonly droppedFromMessages: DroppedFields;
}

/**
 * Reads a parsed body into a new call. Null members become absent. The call shares no objects with the body except JSON
 * Schemas and provider state.
 * @throws GatewayError with the code and the path of the first fault, in the order of the schema
 */
export function parseMessages(body: unknown, limits: Limits, known: KnownItems = {}): MessagesCall {
  const { reading, dropped } = beginReading(limits, { known });
  const given = messagesRequest(body, "", reading);
  const { system } = given;
  return {
    model: given.model,
    stream: given.stream ?? false,
    sessionId: given.sessionId ?? null,
    turnId: given.turnId ?? null,
    groups: given.messages,
    system:
      system === undefined || system.length === 0 ? null : { role: "system", content: system },
    options: optionsOf(given),
    droppedFields: dropped.all(),
    droppedFromMessages: dropped.ofConversation(),
  };
}

type ParsedRequest = ReturnType<typeof messagesRequest>;

/** The options of the request to the model, without the conversation. */
function optionsOf(given: ParsedRequest): Omit<CompletionRequest, "messages"> {
  const {
    model,
    messages,
    system,
    stream,
    sessionId,
    turnId,
    tools = [],
    toolChoice,
    outputConfig = {},
    outputFormat,
    stop = [],
    metadata = {},
    cacheControl,
    contextManagement,
    ...options
  } = given;
  const { user_id: user } = metadata;
  const { effort, format = outputFormat } = outputConfig;
  const choice = { toolChoice: toolChoice?.choice, parallelToolCalls: toolChoice?.parallel };
  return {
    ...requestMembers(options),
    ...toolUse({ tools, ...choice }, "tool_choice.name"),
    ...(format === undefined ? {} : { responseFormat: format }),
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(user === undefined ? {} : { user, metadata: { user_id: user } }),
    ...anthropicOptions({ effort, cacheControl, contextManagement }),
  };
}

function anthropicOptions(
  members: {
    readonly [Name in keyof AnthropicOptions]: AnthropicOptions[Name] | undefined;
  },
): Pick<CompletionRequest, "anthropic"> {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return given.length === 0 ? {} : { anthropic: Object.fromEntries(given) };
}

/** The instructions as one text, for the record of the Step. */
export function instructionsOf({ content }: SystemMessage): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("\n\n");
}

/**
 * The betas that are passed on to Anthropic: those that change the model's answer, its limits or its caches. Others, such as
 * those of tools that the provider runs, are left out.
 */
const passedOn: ReadonlySet<string> = new Set([
  "claude-code-20250219",
  "context-1m-2025-08-07",
  "context-management-2025-06-27",
  "effort-2025-11-24",
  "extended-cache-ttl-2025-04-11",
  "fine-grained-tool-streaming-2025-05-14",
  "interleaved-thinking-2025-05-14",
  "mid-conversation-system-2026-04-07",
  "model-context-window-exceeded-2025-08-26",
  "output-128k-2025-02-19",
  "output-300k-2026-03-24",
  "prompt-caching-2024-07-31",
  "prompt-caching-scope-2026-01-05",
  "structured-outputs-2025-11-13",
  "thinking-display-updates-2026-08-18",
  "thinking-token-count-2026-05-13",
  "token-efficient-tools-2025-02-19",
]);

/** The names in an `anthropic-beta` header that are passed on, each once. */
export function betasIn(header: string | null): readonly string[] {
  if (header === null) return [];
  const given = new Set(header.split(",").map((name) => name.trim()));
  return [...passedOn].filter((name) => given.has(name));
}
