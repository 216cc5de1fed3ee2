import { type RowReader, readRow, type SqlParameters } from "@tollgate/store-sql";
import type { TogetherCall } from "../functions/functions.ts";
import type { Connection } from "./connection.ts";
import { PostgresFailure } from "./failure.ts";
import type { TryAgain } from "./try-again.ts";

/** What the database answered one of those that called together. */
export interface BatchAnswer {
  readonly row: RowReader;
  /** Whether an earlier run of the same call may have been committed. */
  readonly isUnsure: boolean;
}

/**
 * Makes a call in one statement with those that wait at the same time; resolves when it is on disk. Must be safe to run
 * again although an earlier run may have been committed.
 */
export type BatchedCall = (parameters: SqlParameters) => Promise<BatchAnswer>;

/** What carries calls to the database. */
export interface Carriage {
  readonly withConnection: <Result>(
    use: (connection: Connection) => Promise<Result>,
  ) => Promise<Result>;
  readonly tryAgain: TryAgain;
}

interface Member {
  readonly parameters: SqlParameters;
  readonly length: number;
  readonly resolve: (answer: BatchAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** How many may be in one statement: few sizes, for each is prepared on every connection. */
const sizes = [16, 8, 4, 2, 1] as const;
/** What they may be long together, in bytes and characters; a longer one goes alone. */
const longestBatch = 1_048_576;
/** How many statements of one kind may be under way before calls wait for each other. */
const mostCarriers = 2;
const longestQueue = 256;

/** How long one waits for a lock: alone; and with others, who must not wait for long, nor for each other. */
const patience = { alone: "1500ms", together: "100ms" } as const;

/**
 * Nothing waits on a timer: whoever comes while few statements are under way goes at once, and those who come meanwhile
 * go together. What fails together runs again alone, so that no call suffers from another.
 */
export function createBatches(call: TogetherCall, carriage: Carriage): BatchedCall {
  const { withConnection } = carriage;
  const { send, alone } = createSending(call, carriage);
  const queue: Member[] = [];
  let carriers = 0;
  let isBorrowing = false;

  const take = (): readonly Member[] => {
    isBorrowing = false;
    const members = queue.splice(0, sizeOf(queue));
    dispatch();
    return members;
  };
  const carry = async (): Promise<void> => {
    let members: readonly Member[] | null = null;
    isBorrowing = true;
    try {
      await withConnection(async (connection) => {
        members = take();
        if (members.length > 0) await send(connection, members);
      });
    } catch (error) {
      if (members === null) isBorrowing = false;
      for (const member of members ?? []) alone(member, failureOf(error, members));
      // Who waited meanwhile has waited for the same connection or server, and would wait as long again for each.
      if (members === null || isTimeout(error))
        for (const member of queue.splice(0)) alone(member, members === null ? error : unheard());
    }
  };
  const dispatch = (): void => {
    if (queue.length === 0 || isBorrowing || carriers >= mostCarriers) return;
    carriers++;
    void carry().then(() => {
      carriers--;
      dispatch();
    });
  };
  return (parameters) =>
    new Promise((resolve, reject) => {
      if (queue.length >= longestQueue)
        return reject(new PostgresFailure(`${longestQueue} calls wait for a connection already`));
      queue.push({ parameters, length: lengthOf(parameters), resolve, reject });
      dispatch();
    });
}

function createSending(call: TogetherCall, { withConnection, tryAgain }: Carriage) {
  const names = Object.keys(call.parameters);
  const ask = async (
    connection: Connection,
    members: readonly Member[],
  ): Promise<readonly RowReader[]> => {
    const waits = members.length === 1 ? patience.alone : patience.together;
    const rows = await connection.each(
      call.statement(members.length),
      names,
      members.map(({ parameters }) => ({ ...parameters, patience: waits })),
    );
    return rows.map(readRow);
  };
  return {
    async send(connection: Connection, members: readonly Member[]): Promise<void> {
      const rows = await ask(connection, members);
      for (const [place, row] of rows.entries()) members[place]?.resolve({ row, isUnsure: false });
    },
    /** Runs a call by itself; `failure` is what became of an earlier run, or null. */
    alone(member: Member, failure: unknown): void {
      const run = async (isUnsure: boolean): Promise<BatchAnswer> => {
        const [row] = await withConnection((connection) => ask(connection, [member]));
        if (!row) throw new TypeError("the database did not answer");
        return { row, isUnsure };
      };
      tryAgain(run, { evenIfDone: true, failure }).then(member.resolve, member.reject);
    },
  };
}

/** How many of those that wait go together next. */
function sizeOf(queue: readonly Member[]): number {
  let length = 0;
  const tooLong = queue.findIndex((member, place) => {
    length += member.length;
    return place === sizes[0] || (place > 0 && length > longestBatch);
  });
  const most = tooLong < 0 ? queue.length : tooLong;
  return sizes.find((size) => size <= most) ?? 0;
}

function lengthOf(parameters: SqlParameters): number {
  let length = 0;
  for (const value of Object.values(parameters))
    if (value !== null && typeof value !== "number") length += value.length;
  return length;
}

/** What a failure is for one of those it befell: of several, one alone may be its cause. */
function failureOf(error: unknown, members: readonly Member[] | null): unknown {
  const isOfAll = error instanceof PostgresFailure && error.kind.isLost;
  return isOfAll || members?.length === 1 ? error : null;
}

function isTimeout(error: unknown): boolean {
  return error instanceof PostgresFailure && error.kind.isTimeout;
}

/** What a wait in vain was for those that were not sent. */
function unheard(): PostgresFailure {
  return new PostgresFailure("the server does not answer", { isPassing: true, isTimeout: true });
}
