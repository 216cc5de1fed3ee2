import type { CheckpointRepository } from "../contracts/checkpoint-repository.ts";
import type { Checkpoint } from "../domain/checkpoint.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { NoteSigner } from "./checkpoint-note.ts";
import { appendLeaves, emptyTree, packFrontier, type Tree, unpackTree } from "./tree.ts";

interface LogSealing {
  readonly checkpoints: CheckpointRepository;
  readonly signer: NoteSigner;
  readonly memory: SignedMemory;
  readonly now: () => number;
  readonly isStopped: () => boolean;
  /** Called with each checkpoint that this process signed. */
  readonly signed: (checkpoint: Checkpoint & { readonly note: string }) => void;
}

/** The last checkpoint of each log that this process signed, which the database can't change. */
export interface SignedMemory {
  /** Whether the log's last checkpoint is the signed one, or a later one. */
  isKept(organizationId: string, last: Checkpoint | null): boolean;
  keep(signed: Checkpoint): void;
}

const maxLogs = 10_000;

export function createSignedMemory(): SignedMemory {
  const logs = new Map<string, Pick<Checkpoint, "number" | "note">>();
  return {
    isKept(organizationId, last) {
      const signed = logs.get(organizationId);
      if (signed === undefined) return true;
      if (last === null || last.number < signed.number) return false;
      return last.number > signed.number || last.note === signed.note;
    },
    keep({ organizationId, number, note }) {
      logs.delete(organizationId);
      logs.set(organizationId, { number, note });
      const [oldest] = logs.keys();
      if (logs.size > maxLogs && oldest !== undefined) logs.delete(oldest);
    },
  };
}

/** The error of a log that was changed after it was signed. Nothing more is signed for it. */
export class InconsistentLog extends Error {}

const leavesPerCheckpoint = 1_000;

/**
 * Seals what an organization's log has, batch by batch. First the leaves get their indexes, then the checkpoint is signed:
 * so a crash or a failing signer leaves at most one checkpoint unsigned, which the next call signs as it is. Ends early if
 * another process seals the same log.
 * @throws InconsistentLog if the log was changed after it was signed
 */
export async function sealLog(sealing: LogSealing, organizationId: string): Promise<void> {
  const { checkpoints } = sealing;
  const last = await checkpoints.last(organizationId);
  if (!sealing.memory.isKept(organizationId, last))
    throw new InconsistentLog("A signed checkpoint was changed or removed.");
  if (last !== null && last.note === null) await signLast(sealing, last);
  let number = last === null ? 0 : last.number + 1;
  let tree = last === null ? emptyTree : treeOf(sealing, last);
  while (!sealing.isStopped()) {
    const batch = await checkpoints.next({ organizationId, limit: leavesPerCheckpoint });
    if (batch.places.length === 0) return;
    tree = appendLeaves(tree, batch.hashes);
    const checkpoint = {
      organizationId,
      number,
      size: tree.size,
      frontier: packFrontier(tree),
      at: sealing.now(),
    };
    if (!(await checkpoints.add({ checkpoint, batch }))) return;
    await sign(sealing, checkpoint, tree);
    number++;
    // A store in this process and a local key would never let other work run.
    await yieldToEventLoop();
  }
}

/** Signs a checkpoint that was left unsigned, if its leaves, added to the checkpoint before, match it. */
async function signLast(sealing: LogSealing, last: Checkpoint): Promise<void> {
  const { checkpoints } = sealing;
  const { organizationId, number } = last;
  const before = { cursor: null, limit: 1 };
  const query = { organizationId, from: number - 1 };
  const [previous] = number === 0 ? [] : (await checkpoints.list(query, before)).data;
  let tree = previous === undefined ? emptyTree : treeOf(sealing, previous);
  const { data } = await checkpoints.leaves(
    { organizationId, from: tree.size },
    { cursor: null, limit: leavesPerCheckpoint },
  );
  tree = appendLeaves(
    tree,
    data.flatMap(({ leaf }) => leaf?.hash ?? []),
  );
  if (tree.size !== last.size || Buffer.compare(packFrontier(tree), last.frontier) !== 0)
    throw new InconsistentLog("The leaves don't match the last checkpoint.");
  await sign(sealing, last, tree);
}

async function sign(
  { checkpoints, signer, memory, signed }: LogSealing,
  checkpoint: Omit<Checkpoint, "note">,
  tree: Tree,
): Promise<void> {
  const { organizationId, number } = checkpoint;
  const note = await signer.sign(signer.textOf(organizationId, tree));
  if (!(await checkpoints.sign({ organizationId, number, note }))) return;
  memory.keep({ ...checkpoint, note });
  signed({ ...checkpoint, note });
}

/** The tree of a checkpoint, which must be the one that was signed. */
function treeOf(
  { signer }: LogSealing,
  { organizationId, size, frontier, note }: Checkpoint,
): Tree {
  const tree = unpackTree(size, frontier);
  const isSigned =
    tree !== null && (note === null || signer.isNoteOf(signer.textOf(organizationId, tree), note));
  if (!isSigned) throw new InconsistentLog("The last checkpoint isn't the one that was signed.");
  return tree;
}
