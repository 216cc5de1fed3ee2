import type { OpeningRefusal, Owner, StepIntent } from "@tollgate/core/store";
import { opening, readRow, type SessionRecord, sessionRecordFromRow } from "@tollgate/store-sql";
import { PostgresFailure } from "../database/failure.ts";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import { matching } from "../statements/matching.ts";
import { chainLength, commonPrefix } from "./chain.ts";
import { chainOf } from "./chain-of.ts";

/** Where a request's messages belong; a Session to continue is locked. */
export type Assignment =
  | { readonly kind: "continue"; readonly session: SessionRecord }
  | { readonly kind: "branch"; readonly originId: string; readonly commonLength: number }
  | { readonly kind: "create" };

type NotFound = Extract<OpeningRefusal, { code: "session_not_found" | "turn_not_found" }>;

/** How often a Session that was found may have gone on before it could be locked. */
const mostRounds = 20;

/** The assignment rules of section 3 of the specification. */
export async function assignSession(
  transaction: Transaction,
  intent: StepIntent,
): Promise<Assignment | NotFound> {
  const { owner, transcript } = intent;
  const ownedBy = async (statement: string, id: string): Promise<SessionRecord | null> =>
    owned(owner, await find(transaction, statement, owner, id));
  const { sessionId, turnId } = transcript;
  const named = sessionId === null ? null : await ownedBy(locking.session, sessionId);
  if (sessionId !== null && !named) return { code: "session_not_found" };
  const ofTurn = turnId === null ? null : await ownedBy(locking.sessionOfTurn, turnId);
  if (turnId !== null && !ofTurn) return { code: "turn_not_found" };

  if (named) return continueNamed(transaction, intent, named);
  if (ofTurn && isPrefix(ofTurn, transcript.chain)) return { kind: "continue", session: ofTurn };
  return continueMatching(transaction, intent);
}

/**
 * A named Session goes on, or the branch of it that the request follows, or a new branch begins. The lock on the named
 * one makes requests that name it take turns, so that two equal ones do not both begin a branch.
 */
async function continueNamed(
  transaction: Transaction,
  { owner, transcript: { chain } }: StepIntent,
  session: SessionRecord,
): Promise<Assignment> {
  if (isPrefix(session, chain)) return { kind: "continue", session };
  const followed = await lockFound(transaction, owner, {
    find: () =>
      transaction.get(matching.descendants, {
        organization_id: owner.organizationId,
        id: session.id,
        chain,
        length: chainLength(chain),
      }),
    isStill: (branch) => isPrefix(branch, chain),
  });
  if (followed) return { kind: "continue", session: followed };
  const commonLength = commonPrefix(await chainOf(transaction, session), chain);
  return { kind: "branch", originId: session.id, commonLength };
}

/** Omitted ids continue or create; they never branch. */
async function continueMatching(transaction: Transaction, intent: StepIntent): Promise<Assignment> {
  const { owner, transcript } = intent;
  const { chain } = transcript;
  const session = await lockFound(transaction, owner, {
    find: () => findMatching(transaction, intent),
    isStill: (found) => matches(found, chain),
  });
  return session ? { kind: "continue", session } : { kind: "create" };
}

async function findMatching(transaction: Transaction, intent: StepIntent): Promise<unknown> {
  const { owner, source, transcript } = intent;
  const { chain, alsoConsider } = transcript;
  const recent = await transaction.get(matching.recent, {
    organization_id: owner.organizationId,
    key_id: owner.keyId,
    source,
    chain,
    length: chainLength(chain),
  });
  if (alsoConsider === null) return recent;
  const other = owned(owner, await find(transaction, opening.session, owner, alsoConsider));
  if (!other || !matches(other, chain)) return recent;
  if (recent === undefined) return other;
  const found = await find(transaction, opening.session, owner, readRow(recent).text("id"));
  return longest(found, other) ?? undefined;
}

/** Finds a Session and locks it; if it has gone on by then, finds anew. */
async function lockFound(
  transaction: Transaction,
  owner: Owner,
  {
    find: search,
    isStill,
  }: {
    readonly find: () => Promise<unknown>;
    readonly isStill: (session: SessionRecord) => boolean;
  },
): Promise<SessionRecord | null> {
  for (let round = 0; round < mostRounds; round++) {
    const row = await search();
    if (row === undefined) return null;
    const session = await find(transaction, locking.session, owner, readRow(row).text("id"));
    if (session && isStill(session)) return session;
  }
  throw new PostgresFailure("the Session to continue kept going on", { isPassing: true });
}

/** One whose first Step alone is all it has, unanswered, is continued only by what goes beyond it. */
function matches(session: SessionRecord, chain: Uint8Array): boolean {
  return isPrefix(session, chain) && !(session.inFlight && session.length === chainLength(chain));
}

function longest(a: SessionRecord | null, b: SessionRecord): SessionRecord {
  if (!a) return b;
  if (a.length !== b.length) return a.length > b.length ? a : b;
  return a.updated > b.updated ? a : b;
}

async function find(
  transaction: Transaction,
  statement: string,
  { organizationId }: Owner,
  id: string,
): Promise<SessionRecord | null> {
  const row = await transaction.get(statement, { organization_id: organizationId, id });
  return row === undefined ? null : sessionRecordFromRow(row);
}

function owned(owner: Owner, session: SessionRecord | null): SessionRecord | null {
  return session?.userId === owner.userId && session.keyId === owner.keyId ? session : null;
}

/** The last value of a chain stands for all before it, so comparing the head compares the history. */
function isPrefix({ length, headBytes }: SessionRecord, chain: Uint8Array): boolean {
  if (length === 0 || length > chainLength(chain)) return false;
  return Buffer.compare(chain.subarray((length - 1) * 32, length * 32), headBytes) === 0;
}
