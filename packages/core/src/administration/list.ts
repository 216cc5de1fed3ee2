import type { StorePage, StorePaging } from "../contracts/repositories.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { otherWork } from "../kernel/other-work.ts";

/** Which page of a list: `cursor` is what the page before gave, `limit` is 1 to 1,000 rows (default 100). */
export interface Paging {
  readonly cursor?: string | null;
  readonly limit?: number;
}

/** One page of a list. */
export interface Page<Row> {
  readonly data: readonly Row[];
  /** Give it to get the next page; null at the end. */
  readonly nextCursor: string | null;
}

/** A list: one page when awaited, every row, page after page, under `for await`. */
export interface List<Row> extends PromiseLike<Page<Row>>, AsyncIterable<Row> {}

const defaultLimit = 100;
const mostRows = 1_000;

/** Makes a list from a way to read one page of records. */
export function listOf<Stored, Row>(
  read: (paging: StorePaging) => Promise<StorePage<Stored>>,
  toRow: (stored: Stored) => Row | null,
  paging: Paging = {},
): List<Row> {
  async function page(cursor: string | null): Promise<Page<Row>> {
    const limit = paging.limit ?? defaultLimit;
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > mostRows) {
      throw new GatewayError(
        "invalid_argument",
        `limit must be a whole number from 1 to ${mostRows}.`,
        { param: "limit" },
      );
    }
    const { data, nextCursor } = await read({ cursor, limit });
    return { data: data.flatMap((stored) => toRow(stored) ?? []), nextCursor };
  }
  const start = paging.cursor ?? null;
  return {
    // biome-ignore lint/suspicious/noThenProperty: a list is meant to be awaited for its first page.
    then: (resolve, reject) => page(start).then(resolve, reject),
    async *[Symbol.asyncIterator]() {
      let cursor = start;
      do {
        const { data, nextCursor } = await page(cursor);
        yield* data;
        cursor = nextCursor;
        if (cursor !== null) await otherWork();
      } while (cursor !== null);
    },
  };
}
