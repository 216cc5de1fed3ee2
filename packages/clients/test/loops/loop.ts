import { z } from "zod";
import { toolResult } from "../upstreams/script.ts";

/** The endpoint and the options of a conversation. */
export interface LoopTarget {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
  readonly stream: boolean;
  /** The library's `fetch`. */
  readonly fetch: typeof fetch;
}

/**
 * Runs a conversation as a library's users do: sends each prompt, lets the library (or its documented loop) call the
 * tools, and continues with the library's own history. Returns the text of each answer.
 */
export type Converse = (
  target: LoopTarget,
  prompts: readonly string[],
) => Promise<readonly string[]>;

const shapes = {
  get_weather: z.object({ city: z.string() }),
  get_clothes: z.object({ degrees: z.number() }),
  get_time: z.object({}),
};

type ToolName = keyof typeof shapes;

/** One tool of the script, for any library: a schema in both forms, and the function. */
const scriptedTool = (
  name: ToolName,
  properties: Record<string, { type: "string" | "number" }>,
) => ({
  name,
  description: `Calls ${name}`,
  shape: shapes[name],
  parameters: {
    type: "object" as const,
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  },
  run: (args: unknown) => toolResult({ name, args: shapes[name].parse(args) }),
});

export const tools = [
  scriptedTool("get_weather", { city: { type: "string" } }),
  scriptedTool("get_clothes", { degrees: { type: "number" } }),
  scriptedTool("get_time", {}),
];

/** Calls a tool like a handwritten loop: by name, with the arguments that the model wrote. */
export function runTool(name: string, written: string): string {
  const found = tools.find((tool) => tool.name === name);
  if (found === undefined) throw new Error(`Unknown tool: ${name}.`);
  return found.run(JSON.parse(written === "" ? "{}" : written));
}

/** Keys and items of a request that contain a provider's state. */
const stateKeys = new Set([
  "reasoning_content",
  "reasoning_details",
  "extra_content",
  "provider_specific_fields",
  "thinking_blocks",
]);

const isState = z.union([
  z.looseObject({ type: z.enum(["reasoning", "thinking", "redacted_thinking"]) }),
  z.looseObject({ type: z.literal("item_reference"), id: z.string().startsWith("rs_") }),
]);

/** A fetch that removes a provider's state from every request, like a library that doesn't keep it. */
export const fetchWithoutState: typeof fetch = async (url, init) => {
  const request = new Request(url, init);
  const body = await request.clone().text();
  if (body === "") return fetch(request);
  return fetch(new Request(request, { body: JSON.stringify(withoutState(JSON.parse(body))) }));
};

function withoutState(value: unknown): unknown {
  if (Array.isArray(value))
    return value.filter((item) => !isState.safeParse(item).success).map(withoutState);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !stateKeys.has(key));
  return Object.fromEntries(entries.map(([key, child]) => [key, withoutState(child)]));
}
