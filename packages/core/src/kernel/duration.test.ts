import { expect, it } from "vitest";
import { parseDuration } from "./duration.ts";

it.each([
  ["30d", 2_592_000_000],
  ["24h", 86_400_000],
  ["90s", 90_000],
  ["0ms", 0],
  [250, 250],
  ["999999999999d", null],
  ["1.5h", null],
  ["-1s", null],
  [-1, null],
  [0.5, null],
  ["", null],
])("%s is %s milliseconds", (written, milliseconds) => {
  expect(parseDuration(written)).toBe(milliseconds);
});
