// An auditor of what the sequencer writes. It shares no code with it, so that a mistake there can't hide here.
import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";

/** A log as the database has it, and what its reader trusts. */
export interface LogToVerify {
  /** `""` for the log of the leaves that belong to no organization. */
  readonly organizationId: string;
  /** The public keys whose signatures count, each as `name+id+key`. */
  readonly keys: readonly string[];
  /** Notes of this log that were kept outside the database. */
  readonly anchors: readonly string[];
  readonly checkpoints: AsyncIterable<LoggedCheckpoint>;
  /** The leaves from an index on. */
  readonly leaves: (from: number) => AsyncIterable<LoggedLeaf>;
  /** How many leaves should have an index below the size but don't, and the earliest of their times. */
  readonly outside: (size: number) => Promise<{
    readonly count: number;
    readonly since: number | null;
  }>;
}

interface LoggedCheckpoint {
  readonly number: number;
  readonly size: number;
  readonly note: string | null;
}

interface LoggedLeaf {
  readonly index: number;
  readonly leaf: {
    readonly id: string;
    readonly organizationId: string;
    readonly kind: string;
    readonly at: number;
    readonly meta: string;
    readonly hash: Uint8Array;
  } | null;
}

/** The result of verifying a log. */
export interface VerifiedLog {
  /** How many leaves the last valid checkpoint covers. */
  readonly size: number;
  /** How many checkpoints are valid: each is signed, and follows from the one before. */
  readonly checkpoints: number;
  /** How many anchors were found in the log. */
  readonly anchors: number;
  /** The first thing wrong; null for nothing. */
  readonly problem: LogProblem | null;
}

/** The first thing wrong in a log. Everything before it is as it was signed. */
export interface LogProblem {
  /** The index of the first leaf that is or may be wrong. */
  readonly index: number;
  /** The number of the checkpoint that doesn't hold. */
  readonly checkpoint: number;
  readonly message: string;
}

/**
 * Verifies signatures, leaf hashes, density, roots, consistency of all checkpoints in turn, and anchors, and that no leaf
 * was kept out of the log.
 */
export async function verifyLog(log: LogToVerify): Promise<VerifiedLog> {
  const keys = log.keys.flatMap((key) => readKey(key) ?? []);
  const signed = (note: string) => readNote(note, log.organizationId, keys);
  const anchors = log.anchors.map(signed);
  const anchoredSizes = new Set(anchors.map((anchor) => anchor?.size));
  const leavesFrom = (index: number) => log.leaves(index)[Symbol.asyncIterator]();
  let leaves = leavesFrom(0);
  const tree: Buffer[] = [];
  /** By the sizes that anchors have. */
  const roots = new Map<number, string>([[0, rootOf(tree)]]);
  let [size, checkpoints] = [0, 0];
  const end = (message: string | null, index = size): VerifiedLog => {
    const problem = message === null ? null : { index, checkpoint: checkpoints, message };
    const anchored = anchors.filter((anchor) => anchorProblem(anchor) === null).length;
    return { size, checkpoints, anchors: anchored, problem };
  };
  const anchorProblem = (stated: SignedTree | null): string | null => {
    if (stated === null) return "an anchor has no valid signature of a given key for this log";
    const found = roots.get(stated.size);
    if (found === undefined)
      return `the log has no checkpoint for the anchor of ${stated.size} leaves`;
    return found === stated.root ? null : `the anchor of ${stated.size} leaves has another root`;
  };

  for await (const { number, size: next, note } of log.checkpoints) {
    if (number !== checkpoints) return end(`checkpoint ${checkpoints} is missing or isn't signed`);
    // Only the last one may wait for its signature.
    if (note === null) continue;
    const stated = signed(note);
    if (stated === null) return end("its note has no valid signature of a given key for this log");
    if (stated.size !== next || next <= size) return end("its size isn't the signed one");
    for (let index = size; index < next; index++) {
      let { value } = await leaves.next();
      if (!value) {
        // The log may have grown since its last leaves were read.
        leaves = leavesFrom(index);
        ({ value } = await leaves.next());
      }
      const problem = leafProblem(value, index, log.organizationId);
      if (problem !== null) return end(problem, index);
      append(tree, index, leafHash(value?.leaf?.meta ?? ""));
    }
    if (rootOf(tree) !== stated.root)
      return end(`leaves ${size} to ${next - 1} aren't those that were signed`);
    size = next;
    checkpoints++;
    if (anchoredSizes.has(size)) roots.set(size, stated.root);
  }
  const wrong = anchors.map(anchorProblem).find((problem) => problem !== null);
  const outside = outsideProblem(await log.outside(size));
  const isEmpty = outside !== null && size === 0;
  return end(wrong ?? (isEmpty ? `nothing is sealed: ${outside}` : outside));
}

function outsideProblem({ count, since }: Awaited<ReturnType<LogToVerify["outside"]>>) {
  if (count === 0) return null;
  const time = new Date(since ?? 0).toISOString();
  if (count === 1) return `1 leaf that should be sealed isn't: it was written at ${time}`;
  return `${count} leaves that should be sealed aren't: the first was written at ${time}`;
}

function leafProblem(
  found: LoggedLeaf | undefined,
  index: number,
  organization: string,
): string | null {
  if (found?.index !== index) return `leaf ${index} is missing from the log`;
  const { leaf } = found;
  if (leaf === null) return `leaf ${index} was removed`;
  if (!leafHash(leaf.meta).equals(leaf.hash)) return `leaf ${index} doesn't have its hash`;
  const { id, kind, at } = leaf;
  const stated = factsIn(leaf.meta);
  const row = { id, kind, at, organization };
  const isSame = Object.entries(row).every(
    ([name, value]) => typeof stated === "object" && stated && Reflect.get(stated, name) === value,
  );
  return isSame ? null : `leaf ${index} doesn't match its row in id, kind, time or organization`;
}

/** Null for a text that isn't JSON. */
function factsIn(meta: string): unknown {
  try {
    return JSON.parse(meta);
  } catch {
    return null;
  }
}

interface Key {
  readonly name: string;
  readonly id: Buffer;
  readonly key: KeyObject;
}

/** Whether a text is an Ed25519 key of the form name+id+key, with the id that follows from the others. */
export function isVerificationKey(text: string): boolean {
  return readKey(text) !== null;
}

function readKey(text: string): Key | null {
  const [, name = "", id = "", encoded = ""] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  const expected = createHash("sha256").update(`${name}\n`).update(bytes).digest("hex").slice(0, 8);
  if (bytes.length !== 33 || bytes[0] !== 1 || id !== expected) return null;
  const jwk = { kty: "OKP", crv: "Ed25519", x: bytes.subarray(1).toString("base64url") };
  return { name, id: Buffer.from(id, "hex"), key: createPublicKey({ key: jwk, format: "jwk" }) };
}

/** The tree that a note states. */
interface SignedTree {
  readonly size: number;
  readonly root: string;
}

/** The size and the root in a note, if one of the keys signed it for this log. */
function readNote(note: string, organizationId: string, keys: readonly Key[]): SignedTree | null {
  const [, text = "", lines = ""] =
    /^([^\n]+\n\d{1,16}\n[^\n]+\n)\n((?:[^\n]+\n)+)$/.exec(note) ?? [];
  const [origin, size, root = ""] = text.split("\n");
  const isSigned = keys.some(({ name, id, key }) => {
    if (origin !== originOf(name, organizationId)) return false;
    return lines.split("\n").some((line) => {
      const [dash, signer, encoded = ""] = line.split(" ");
      const bytes = Buffer.from(encoded, "base64");
      if (dash !== "\u2014" || signer !== name || !bytes.subarray(0, 4).equals(id)) return false;
      return verify(null, Buffer.from(text), key, bytes.subarray(4));
    });
  });
  return isSigned ? { size: Number(size), root } : null;
}

function originOf(name: string, organizationId: string): string {
  const path = `/organizations/${encodeURIComponent(organizationId)}`;
  return organizationId === "" ? name : name + path;
}

function leafHash(meta: string): Buffer {
  return createHash("sha256").update("\0").update(meta).digest();
}

/** Appends a leaf to the complete subtrees of a tree of `size` leaves. */
function append(subtrees: Buffer[], size: number, leaf: Buffer): void {
  subtrees.push(leaf);
  for (let rest = size + 1; rest % 2 === 0; rest /= 2) {
    const [left, right] = subtrees.splice(-2);
    if (left && right) subtrees.push(parent(left, right));
  }
}

function rootOf(subtrees: readonly Buffer[]): string {
  const [last, ...others] = subtrees.toReversed();
  const root = others.reduce((right, left) => parent(left, right), last ?? emptyRoot());
  return root.toString("base64");
}

function parent(left: Buffer, right: Buffer): Buffer {
  return createHash("sha256").update("\u0001").update(left).update(right).digest();
}

function emptyRoot(): Buffer {
  return createHash("sha256").digest();
}
