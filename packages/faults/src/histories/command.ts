import fc from "fast-check";
import { type AdministrativeCommand, administrativeCommand } from "./administrative-command.ts";

/** One event of a history. Numbers that select something wrap around. */
export type Command =
  | AdministrativeCommand
  | {
      readonly type: "chat";
      readonly key: number;
      /** The conversation it continues; null starts one. */
      readonly after: number | null;
      readonly stream: boolean;
      /** Whether the request names its Session. */
      readonly named: boolean;
      /** Through our account, the organization's own, or a model that the policy denies. */
      readonly model: "ours" | "own" | "denied";
      readonly words: number;
    }
  | {
      readonly type: "respond";
      readonly key: number;
      /** The response it continues; null starts a conversation. */
      readonly after: number | null;
      readonly stream: boolean;
      readonly store: boolean;
      readonly words: number;
    }
  | {
      readonly type: "message";
      readonly key: number;
      /** The conversation it continues; null starts one. */
      readonly after: number | null;
      readonly stream: boolean;
      readonly words: number;
    }
  | {
      readonly type: "embed";
      readonly key: number;
      readonly model: "ours" | "own" | "denied";
      /** The texts to embed, each of as many words. */
      readonly texts: number;
      readonly base64: boolean;
    }
  /** A streamed chat whose answer takes twenty seconds, so that other commands run meanwhile. */
  | { readonly type: "chatSlowly"; readonly key: number; readonly words: number }
  | { readonly type: "retry" }
  | { readonly type: "disconnect"; readonly stream: number }
  /** The behavior of the next call upstream. */
  | { readonly type: "upstream"; readonly behavior: UpstreamBehavior }
  | {
      readonly type: "getResponse" | "listItems" | "deleteResponse";
      readonly response: number;
      readonly key: number;
    }
  | { readonly type: "sweep" | "rollUp" | "recover" | "restart" | "observe" }
  | { readonly type: "advance"; readonly seconds: number }
  /** Sets only the wall clock, as an operator would. */
  | { readonly type: "setWall"; readonly hours: number };

/** Refused once, refused until the fallback is tried, cut in the middle, a tool call, an answer that hit its limit. */
export type UpstreamBehavior = "refuse" | "exhaust" | "break" | "callTool" | "truncate";

const reference = fc.nat({ max: 7 });
const words = fc.integer({ min: 1, max: 3 });
const stream = fc.boolean();
const key = fc.nat({ max: 3 });
const model = fc.constantFrom("ours" as const, "ours" as const, "own" as const, "denied" as const);

/** Any command. */
const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("chat" as const),
      key,
      after: fc.option(reference, { freq: 3 }),
      stream,
      named: fc.boolean(),
      model,
      words,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant("respond" as const),
      key,
      after: fc.option(reference, { freq: 3 }),
      stream,
      store: fc.boolean(),
      words,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("message" as const),
      key,
      after: fc.option(reference, { freq: 3 }),
      stream,
      words,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("embed" as const),
      key,
      model,
      texts: words,
      base64: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("chatSlowly" as const), key, words }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constantFrom(
        "getResponse" as const,
        "listItems" as const,
        "deleteResponse" as const,
      ),
      response: reference,
      key,
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("retry" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("disconnect" as const), stream: reference }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("upstream" as const),
      behavior: fc.constantFrom<UpstreamBehavior[]>(
        "refuse",
        "exhaust",
        "break",
        "callTool",
        "truncate",
      ),
    }),
  },
  { weight: 18, arbitrary: administrativeCommand },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constantFrom(
        "sweep" as const,
        "rollUp" as const,
        "recover" as const,
        "restart" as const,
        "observe" as const,
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("advance" as const),
      seconds: fc.constantFrom(1, 6, 21, 65),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("setWall" as const),
      hours: fc.constantFrom(-1, 1, 25, 800),
    }),
  },
);

/** A history to play. */
export const someCommands: fc.Arbitrary<readonly Command[]> = fc.array(anyCommand, {
  minLength: 4,
  maxLength: 28,
});
