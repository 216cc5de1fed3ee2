import type { Rule, RuleMatch, RuleOptions } from "./rule.ts";

const ofMatch: Readonly<Record<keyof RuleMatch, true>> = {
  organization: true,
  user: true,
  key: true,
  gateway: true,
  model: true,
  listed: true,
  connection: true,
  source: true,
  from: true,
  upTo: true,
  tools: true,
  images: true,
  structuredOutput: true,
  serviceTier: true,
};

const ofOptions: Readonly<Record<keyof RuleOptions, true>> = {
  fallbacks: true,
  maxOutputTokens: true,
  transcript: true,
  serviceTier: true,
  connection: true,
  reason: true,
};

/** A member that is mistyped would match everything, or oblige to nothing. */
export function memberProblems({ id, match, options }: Rule): readonly string[] {
  return [
    ...Object.keys(match).filter((name) => !Object.hasOwn(ofMatch, name)),
    ...Object.keys(options).filter((name) => !Object.hasOwn(ofOptions, name)),
  ].map((name) => `Rule ${id}: it has no member ${name}.`);
}
