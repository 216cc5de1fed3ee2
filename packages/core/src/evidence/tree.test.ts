import { describe, expect, it } from "vitest";
import { leafHash } from "../domain/leaf-template.ts";
import { appendLeaves, emptyTree, packFrontier, rootOf, type Tree, unpackTree } from "./tree.ts";

/** The leaves of RFC 6962's reference implementation. */
const leaves = [
  "",
  "\u0000",
  "\u0010",
  "\u0020\u0021",
  "\u0030\u0031",
  "\u0040\u0041\u0042\u0043",
  "\u0050\u0051\u0052\u0053\u0054\u0055\u0056\u0057",
  "\u0060\u0061\u0062\u0063\u0064\u0065\u0066\u0067\u0068\u0069\u006a\u006b\u006c\u006d\u006e\u006f",
].map(leafHash);

const hex = (tree: Tree): string => Buffer.from(rootOf(tree)).toString("hex");

describe("the Merkle tree", () => {
  it.each([
    [0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    [1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"],
    [2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    [3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"],
    [4, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"],
    [5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"],
    [6, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"],
    [7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"],
    [8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"],
  ])("has the published root of %i leaves, however they were added", (size, root) => {
    const all = leaves.slice(0, size);
    expect(hex(appendLeaves(emptyTree, all))).toBe(root);
    for (let cut = 0; cut <= size; cut++) {
      const first = appendLeaves(emptyTree, all.slice(0, cut));
      const stored = unpackTree(cut, packFrontier(first)) ?? emptyTree;
      expect(hex(appendLeaves(stored, all.slice(cut)))).toBe(root);
    }
  });

  it("isn't read from a frontier of another size", () => {
    const packed = packFrontier(appendLeaves(emptyTree, leaves.slice(0, 3)));
    expect(unpackTree(3, packed)).not.toBe(null);
    for (const size of [0, 1, 2, 4, 7]) expect(unpackTree(size, packed)).toBe(null);
    expect(unpackTree(3, packed.subarray(1))).toBe(null);
  });
});
