import { sha256, sha256Of } from "../kernel/digest.ts";

/** A Merkle tree of RFC 6962 as far as appending needs it. */
export interface Tree {
  readonly size: number;
  /** The roots of its complete subtrees, the largest first: one for each 1 bit of the size. */
  readonly frontier: readonly Uint8Array[];
}

export const emptyTree: Tree = { size: 0, frontier: [] };

const hashBytes = 32;
const nodeTag = Uint8Array.of(1);

/** The tree with further leaves, by their hashes. */
export function appendLeaves(tree: Tree, hashes: readonly Uint8Array[]): Tree {
  const frontier = [...tree.frontier];
  let { size } = tree;
  for (const hash of hashes) {
    let node = hash;
    // Each 1 bit at the end of the size is a subtree that the new one completes.
    for (let rest = size; rest % 2 === 1; rest = (rest - 1) / 2)
      node = hashNode(frontier.pop() ?? node, node);
    frontier.push(node);
    size++;
  }
  return { size, frontier };
}

/** The root: SHA-256 of nothing for an empty tree. */
export function rootOf({ frontier }: Tree): Uint8Array {
  const root = frontier.reduceRight<Uint8Array | null>(
    (right, left) => (right === null ? left : hashNode(left, right)),
    null,
  );
  return root ?? sha256("");
}

function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256Of(nodeTag, left, right);
}

/** The frontier as it is stored. */
export function packFrontier({ frontier }: Tree): Uint8Array {
  return Buffer.concat(frontier);
}

/** The stored tree; null if its frontier doesn't fit its size. */
export function unpackTree(size: number, packed: Uint8Array): Tree | null {
  const frontier: Uint8Array[] = [];
  for (let at = 0; at < packed.length; at += hashBytes)
    frontier.push(packed.subarray(at, at + hashBytes));
  const bits = size.toString(2).replaceAll("0", "").length;
  return packed.length === bits * hashBytes ? { size, frontier } : null;
}
