import { GatewayError } from "@tollgate/core";
import { expect, it } from "vitest";
import { describeFailure } from "./failure.ts";

it("escapes control characters of a message and of its cause, which must not control the terminal", () => {
  const cause = new Error("a note of \u001b]0;title\u0007\nin two lines");
  const thrown = new GatewayError("evidence_unavailable", "an id \u202ewritten backwards", {
    cause,
  });
  expect(describeFailure(thrown).line).toBe(
    "error: an id \\u{202e}written backwards (a note of \\u{1b}]0;title\\u{7} · in two lines)",
  );
});
