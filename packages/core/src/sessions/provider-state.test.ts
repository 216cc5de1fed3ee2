import { describe, expect, it } from "vitest";
import type { StateNeeds } from "../contracts/provider.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { AssistantMessage, Message, ProviderState } from "../domain/message.ts";
import type { Json } from "../kernel/stable-json.ts";
import {
  addDropped,
  countDropped,
  requestFor,
  restoreState,
  sealBundle,
  unsealState,
} from "./provider-state.ts";
import { createStateSeal } from "./state-seal.ts";

const state = (from: string | null, ...names: readonly string[]): ProviderState => ({
  from,
  fields: Object.fromEntries(names.map((name) => [name, `${name} of ${from}`])),
});
const user: Message = { role: "user", content: "u" };
const answer = (more: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: "assistant",
  content: "a",
  ...more,
});
const call = (held?: ProviderState) => ({
  id: "call_0",
  type: "function" as const,
  function: { name: "f", arguments: "{}" },
  ...(held === undefined ? {} : { state: held }),
});

describe("state for a provider", () => {
  const needs: StateNeeds = {
    restore: "history",
    reasoningText: "always",
    cacheBreakpoints: false,
  };
  const sentTo = (
    messages: readonly Message[],
    of: Partial<StateNeeds> = {},
    restored: readonly Message[] = [],
  ) => {
    const { note, counts } = countDropped();
    const target = { origin: "g/v", needs: { ...needs, ...of }, restored: new Set(restored) };
    const request = requestFor({ messages }, target, note);
    return { sent: request.messages, dropped: counts() };
  };

  it("goes back only to the provider that issued it", () => {
    const own = answer({ state: state("g/v", "signature") });
    const foreign = answer({
      state: state("h/w", "signature"),
      tool_calls: [call(state("h/w", "data"))],
    });
    expect(sentTo([user, own, foreign])).toEqual({
      sent: [user, own, answer({ tool_calls: [call()] })],
      dropped: { signature: 1, data: 1 },
    });
  });

  it("is left out of earlier turns if the provider doesn't take their text", () => {
    const given = answer({ state: state(null, "reasoning_content") });
    expect(sentTo([given, user]).sent).toEqual([given, user]);
    const left = { sent: [answer(), user], dropped: { reasoning_content: 1 } };
    expect(sentTo([given, user], { restore: "turn" })).toEqual(left);
    expect(sentTo([given, user], { reasoningText: "never" })).toEqual(left);
    expect(sentTo([user, given], { restore: "turn" }).sent).toEqual([user, given]);
    // State that the client didn't send is left out silently.
    const restored = answer({ state: state("g/v", "signature") });
    expect(sentTo([restored, user], { restore: "turn" }, [restored])).toEqual({
      sent: [answer(), user],
      dropped: {},
    });
    expect(sentTo([restored, user], { restore: "turn" }).sent).toEqual([restored, user]);
  });

  it("keeps cache breakpoints in every message if the provider reads them", () => {
    const marked = state(null, "cache_control");
    const part = { type: "text", text: "a", state: marked } as const;
    const messages: readonly Message[] = [
      { role: "system", content: [part] },
      { role: "user", content: [part] },
      { role: "tool", tool_call_id: "call_0", content: "t", state: marked },
      answer({ content: [part] }),
    ];
    expect(sentTo(messages, { cacheBreakpoints: true })).toEqual({ sent: messages, dropped: {} });
    const plain = [{ type: "text", text: "a" }];
    expect(sentTo(messages)).toEqual({
      sent: [
        { role: "system", content: plain },
        { role: "user", content: plain },
        { role: "tool", tool_call_id: "call_0", content: "t" },
        answer({ content: [{ type: "text", text: "a" }] }),
      ],
      dropped: { cache_control: 4 },
    });
  });
});

describe("the state of tools", () => {
  type Tool = NonNullable<CompletionRequest["tools"]>[number];
  const tool: Tool = { name: "f" };
  const marked: Tool = { ...tool, state: state(null, "cache_control") };
  const sentWith = (tools: readonly Tool[] | undefined, cacheBreakpoints: boolean) => {
    const { note, counts } = countDropped();
    const needs: StateNeeds = { restore: "none", reasoningText: "never", cacheBreakpoints };
    const request = { messages: [user], ...(tools && { tools }) };
    const sent = requestFor(request, { origin: "g/v", needs, restored: new Set() }, note);
    return { tools: sent.tools, isUnchanged: sent === request, dropped: counts() };
  };

  it("is kept for a provider that reads breakpoints, and otherwise dropped and counted", () => {
    expect(sentWith([tool, marked], true).tools).toEqual([tool, marked]);
    expect(sentWith([tool, marked], false)).toEqual({
      tools: [tool, tool],
      isUnchanged: false,
      dropped: { cache_control: 1 },
    });
  });

  it.each([[undefined], [[tool]]])("leaves a request without any unchanged", (tools) => {
    expect(sentWith(tools, false)).toEqual({ tools, isUnchanged: true, dropped: {} });
  });

  it("adds no tools to a request with state but without tools", () => {
    const { note } = countDropped();
    const needs: StateNeeds = { restore: "none", reasoningText: "never", cacheBreakpoints: true };
    const messages = [answer({ state: state("g/v", "signature") })];
    const target = { origin: "g/v", needs, restored: new Set<Message>() };
    expect(requestFor({ messages }, target, note)).toEqual({ messages });
  });
});

describe("a client's copy of state", () => {
  const owner = { userId: "u", keyId: "k", salt: Buffer.alloc(32, 1) };
  const seal = createStateSeal(owner);
  const opened = (given: Partial<AssistantMessage>) => {
    const { note, counts } = countDropped();
    const [message] = unsealState([answer(given)], seal, note);
    return { message, dropped: counts() };
  };
  const items = (...list: readonly Json[]): Partial<AssistantMessage> => ({
    state: { from: null, fields: { reasoning_items: list } },
  });

  it("is nothing in messages without state of the client, which stay as they are", () => {
    const messages = [user, answer(), answer({ state: state("g/v", "a"), tool_calls: [call()] })];
    expect(unsealState(messages, seal, () => {})).toBe(messages);
  });

  it("gets its origin from its sealed texts, which must all have the same", () => {
    const fields = (...origins: readonly string[]) => ({
      from: null,
      fields: Object.fromEntries(
        origins.map((origin, at) => [`f${at}`, { signature: seal.seal(origin, "s") }]),
      ),
    });
    expect(opened({ state: fields("g/v", "g/v") })).toEqual({
      message: answer({
        state: { from: "g/v", fields: { f0: { signature: "s" }, f1: { signature: "s" } } },
      }),
      dropped: {},
    });
    expect(opened({ state: fields("g/v", "h/w") })).toEqual({
      message: answer({ state: { from: "g/v", fields: { f0: { signature: "s" } } } }),
      dropped: { f1: 1 },
    });
    expect(opened({ tool_calls: [call(fields("g/v"))] }).message).toEqual(
      answer({ tool_calls: [call({ from: "g/v", fields: { f0: { signature: "s" } } })] }),
    );
    const forged = { from: null, fields: { f0: { signature: "s" } } };
    expect(opened({ tool_calls: [call(forged)] })).toEqual({
      message: answer({ tool_calls: [call()] }),
      dropped: { f0: 1 },
    });
  });

  it("is dropped beyond a number of sealed texts that no answer has", () => {
    let opens = 0;
    const counting = {
      ...seal,
      open(text: string) {
        opens++;
        return seal.open(text);
      },
    };
    const signature = seal.seal("g/v", "s");
    const fields = { f0: Array.from({ length: 5_000 }, () => ({ signature })) };
    const { note, counts } = countDropped();
    const messages = [answer({ state: { from: null, fields } })];
    expect(unsealState(messages, counting, note)).toEqual([answer()]);
    expect(opens).toBe(4_096);
    expect(counts()).toEqual({ f0: 1 });
  });

  it("has the texts of summaries if its reasoning items are not sealed", () => {
    const parts = [{ type: "summary_text", text: "a" }, { type: "other" }, "b", { text: 1 }];
    const list = [
      { summary: parts },
      "no item",
      { summary: "no list" },
      { summary: [{ text: "c" }] },
    ];
    expect(opened(items(...list))).toEqual({
      message: answer({ state: { from: null, fields: { reasoning_content: "a\nc" } } }),
      dropped: {},
    });
    expect(opened(items({ summary: [] })).message).toEqual(answer());
    const noList = { state: { from: null, fields: { reasoning_items: "none" } } };
    expect(opened(noList).message).toEqual(answer());
  });

  it("comes whole from sealed reasoning items, together with its breakpoints", () => {
    const parts = [
      { type: "tool-call" as const, call: call(), fields: { data: "d" } },
      { type: "tool-call" as const, call: { ...call(), id: "call_1" } },
    ];
    const end = { logprobs: [], finishReason: "stop" as const, usage: {} };
    const completion = { parts, fields: { signature: "s" }, ...end };
    const sealed = sealBundle(completion, "g/v", seal);
    if (sealed === null) expect.unreachable("an answer with state was not sealed");
    const breakpoint = { cache_control: { type: "ephemeral" } };
    const item = { encrypted_content: sealed, summary: [{ text: "ignored" }] };
    const state = { from: null, fields: { reasoning_items: [item], ...breakpoint } };
    expect(opened({ state, tool_calls: [call()] })).toEqual({
      message: answer({
        state: { from: "g/v", fields: { signature: "s", ...breakpoint } },
        tool_calls: [call({ from: "g/v", fields: { data: "d" } })],
      }),
      dropped: {},
    });
    const other = { encrypted_content: seal.seal("g/v", "{}") };
    expect(opened(items(other, { encrypted_content: "forged" })).dropped).toEqual({
      encrypted_content: 2,
    });
    expect(sealBundle({ ...completion, parts: [], fields: {} }, "g/v", seal)).toBeNull();
  });
});

describe("recorded state", () => {
  const recorded = answer({
    state: state("g/v", "signature"),
    tool_calls: [call(state("g/v", "data"))],
  });

  it("replaces the client's copy of an equal message", () => {
    const message = answer({
      state: state(null, "reasoning_content", "cache_control"),
      tool_calls: [call()],
    });
    const restored = restoreState([{ message, recorded }]).get(message);
    expect(restored).toEqual({
      ...recorded,
      state: {
        from: "g/v",
        fields: { signature: "signature of g/v", cache_control: "cache_control of null" },
      },
    });
  });

  it("is not used for another message, or if it has no origin or is incomplete", () => {
    const message = answer({ tool_calls: [call()] });
    const others: readonly (Message | undefined)[] = [
      undefined,
      user,
      answer(),
      { ...recorded, content: "b" },
      answer({ state: state(null, "signature"), tool_calls: [call()] }),
      answer({ state: { ...state("g/v", "signature"), omittedBytes: 1 }, tool_calls: [call()] }),
    ];
    for (const other of others)
      expect(restoreState([{ message, recorded: other }]).size, JSON.stringify(other)).toBe(0);
    expect(restoreState([{ message: user, recorded }]).size).toBe(0);
    expect(restoreState([{ message, recorded }]).size).toBe(1);
  });
});

it("dropped fields are counted by name, whatever the names are", () => {
  const { note, counts } = countDropped();
  expect(addDropped(counts(), counts())).toBe(counts());
  for (const name of ["a", "b", "a", "toString"]) note(name);
  expect(counts()).toEqual({ a: 2, b: 1, toString: 1 });
  expect(addDropped(counts(), { a: 3 })).toEqual({ a: 5, b: 1, toString: 1 });
});
