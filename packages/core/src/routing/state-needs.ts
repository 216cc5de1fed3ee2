import type { StateNeeds } from "../contracts/provider.ts";

/** The options by which a provider says what its models take back of provider state. */
export interface StateOptions {
  /**
   * How far back recorded state is restored where a client's history lacks it. Default `history` for models of `deepseek`,
   * which want the reasoning of every tool call in all later requests; else `turn`.
   */
  readonly restoreState?: StateNeeds["restore"];
  /**
   * Whether reasoning that a client brings back as plain text is sent on, though nothing says which model wrote it:
   * `false` sends no reasoning text at all, not even what was recorded. Default `true` for models of `deepseek`,
   * `moonshotai`, `moonshot` and `kimi`, which refuse tool calls without it; for others only what was recorded as theirs.
   */
  readonly reasoningContent?: boolean;
  /** Whether a client's cache breakpoints are sent on. Default `true` for models of `anthropic`, else `false`. */
  readonly cacheBreakpoints?: boolean;
}

const reasoningVendors: ReadonlySet<string> = new Set([
  "deepseek",
  "moonshotai",
  "moonshot",
  "kimi",
]);
const historyVendors: ReadonlySet<string> = new Set(["deepseek"]);
const breakpointVendors: ReadonlySet<string> = new Set(["anthropic"]);

/** What a model `<vendor>/<model>` takes back, by the options of its provider. */
export function stateNeedsFor(model: string, options: StateOptions = {}): StateNeeds {
  const vendor = model.slice(0, Math.max(0, model.indexOf("/"))).toLowerCase();
  const { restoreState, reasoningContent, cacheBreakpoints } = options;
  return {
    restore: restoreState ?? (historyVendors.has(vendor) ? "history" : "turn"),
    reasoningText:
      reasoningContent === false
        ? "never"
        : (reasoningContent ?? reasoningVendors.has(vendor))
          ? "always"
          : "own",
    cacheBreakpoints: cacheBreakpoints ?? breakpointVendors.has(vendor),
  };
}
