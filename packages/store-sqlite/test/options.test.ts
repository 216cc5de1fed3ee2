import { GatewayError } from "@tollgate/core";
import { describe, expect, it } from "vitest";
import { sqliteStore } from "../src/index.ts";

describe("the source of a SQLite store", () => {
  it.each([
    [undefined, "filename"],
    [{}, "filename"],
    ["tollgate.db", ""],
    [{ filename: "" }, "filename"],
    [{ filename: 1 }, "filename"],
    [{ filename: "a.db", filenam: "b" }, "filenam"],
    [{ client: {} }, "client"],
    [{ client: null }, "client"],
  ])("is rejected if it is %j", (source, path) => {
    // As JavaScript would call it.
    const open = () => Reflect.apply(sqliteStore, undefined, [source]);
    expect(open).toThrow(GatewayError);
    expect(open).toThrow(
      expect.objectContaining({
        code: "invalid_configuration",
        problems: [expect.objectContaining({ path })],
      }),
    );
  });
});
