import { GatewayError } from "@tollgate/core";
import { describe, expect, it } from "vitest";
import { postgresStore } from "../src/index.ts";

const url = "postgres://ada:hunter2@db.example/app";

describe("the options of a PostgreSQL store", () => {
  it.each([
    [{ url }, { migrate: "Check" }, "migrate"],
    [{ url }, { schema: "Acme" }, "schema"],
    [{ url }, { schema: 1 }, "schema"],
    [{ url }, { namedStatements: "no" }, "namedStatements"],
    [{ url }, { shcema: "acme" }, "shcema"],
    [{ url }, "check", ""],
    [{ url: "db.example hunter2" }, {}, "url"],
    [{ url, pol: 1 }, {}, "pol"],
    [{ pool: {} }, {}, "pool"],
    [undefined, {}, "url"],
  ])("are rejected if they are %j, %j", (source, options, path) => {
    // As JavaScript would call it.
    const open = () => Reflect.apply(postgresStore, undefined, [source, options]);
    expect(open).toThrow(GatewayError);
    expect(open).toThrow(
      expect.objectContaining({
        code: "invalid_configuration",
        problems: [expect.objectContaining({ path })],
      }),
    );
    expect(open).not.toThrow("hunter2");
  });
});
