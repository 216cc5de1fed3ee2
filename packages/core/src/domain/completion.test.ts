import { expect, it } from "vitest";
import { CompletionFold } from "./completion.ts";

it("keeps log probabilities for an answer that is written whole, but not for a stream", () => {
  const logprobs = { content: [{ token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] }] };
  for (const keepsLogprobs of [true, false]) {
    const fold = new CompletionFold({ keepsLogprobs });
    fold.add({ type: "text-delta", text: "a" });
    fold.add({ type: "logprobs", logprobs });
    fold.add({ type: "finish", reason: "stop" });
    const { logprobs: kept, parts } = fold.completion();
    expect(kept).toEqual(keepsLogprobs ? [logprobs] : []);
    expect(JSON.stringify(parts).includes("logprob")).toBe(keepsLogprobs);
  }
});
