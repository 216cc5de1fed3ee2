import { expect, it } from "vitest";
import { postgresDialect } from "./postgres-dialect.ts";

it("writes lists as arrays whose elements cannot break out of them (S1)", () => {
  expect(postgresDialect.list(["a", 'b","c', "d\\", "}", ""])).toBe(
    '{"a","b\\",\\"c","d\\\\","}",""}',
  );
  expect(postgresDialect.list([])).toBe("{}");
});
