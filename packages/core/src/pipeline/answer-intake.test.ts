import { describe, expect, it } from "vitest";
import { defaultLimits } from "../domain/limits.ts";
import { createAnswerIntake } from "./answer-intake.ts";

const entry = { token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] };
const logprobs = { content: Array.from({ length: 10 }, () => entry) };

const noState = { values: 0, bytes: 0 };

/** The result of so many events with log probabilities, within 1,000 bytes. */
function failureAfter(events: number, isKept: boolean): string | null {
  const intake = createAnswerIntake({ ...defaultLimits, answerBytes: 1_000 }, isKept);
  for (let event = 0; event < events; event++) intake.take([{ type: "logprobs", logprobs }]);
  return intake.failure(0, noState)?.reason ?? null;
}

describe("the log probabilities of one answer", () => {
  it("are limited if the answer is written whole at its end", () => {
    expect(failureAfter(1, true)).toBeNull();
    expect(failureAfter(10, true)).toBe("too_many_logprobs");
  });

  it("have no limit of their own in a stream of chunks", () => {
    expect(failureAfter(1_000, false)).toBeNull();
  });
});
