import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { requireNode } from "./require-node.ts";

describe("the required Node version", () => {
  it.each(["22.22.3", "22.23.0", "24.15.0", "24.21.0", "25.0.0", "26.1.0"])(
    "accepts %s",
    (node) => {
      expect(() => requireNode(node)).not.toThrow();
    },
  );

  it.each(["18.20.8", "20.20.2", "22.22.2", "22.9.9", "23.11.0", "24.14.9"])(
    "rejects %s in one sentence",
    (node) => {
      expect(() => requireNode(node)).toThrow(
        `Tollgate requires Node 22.22.3 or a later 22, or Node 24.15 or later: this is ${node}`,
      );
    },
  );

  it("matches the package's engines", () => {
    const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
    expect(JSON.parse(manifest)).toMatchObject({ engines: { node: "^22.22.3 || >=24.15" } });
  });
});
