import type { StateNeeds } from "../contracts/provider.ts";

/** The options that define which provider state a provider's models get. */
export interface StateOptions {
  /**
   * How far back to restore recorded state that a client's history lacks. Default `history` for models of `deepseek`,
   * which want the reasoning of every tool call in all later requests; otherwise `turn`.
   */
  readonly restoreState?: StateNeeds["restore"];
  /**
   * Whether to pass on reasoning that a client sends as plain text even if no record shows which model wrote it. `false`
   * sends no reasoning text at all, not even recorded text. Default: `true` for models of `deepseek`, `moonshotai`,
   * `moonshot` and `kimi`, which reject tool calls without it; other models get only text recorded as theirs.
   */
  readonly reasoningContent?: boolean;
  /** Whether to pass on a client's cache breakpoints. Default `true` for models of `anthropic`, otherwise `false`. */
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

/** The provider state that a model `<vendor>/<model>` gets under its provider's options. */
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
