import type { StorePage, StorePaging } from "../contracts/repositories.ts";
import { decodeCursor, encodeCursor } from "../domain/cursor.ts";
import { selects } from "../domain/pattern.ts";
import type { RateLimitScope } from "../domain/rate-limit.ts";
import { filters, read } from "../input/read.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { withStoreErrors } from "./method.ts";
import { budgetFilter, pagingSchema } from "./schemas.ts";
import { type OrganizationScope, tenantOf } from "./tenant.ts";

/** Selects a page of a list. `cursor` is the previous page's `nextCursor`; `limit` is 1 to 1,000 rows (default 100). */
export interface Paging {
  readonly cursor?: string | null;
  readonly limit?: number;
}

/**
 * One page of a list. It may have fewer rows than its `limit`, or none, and yet a `nextCursor`: a page of a filtered list
 * scans at most 20,000 rows.
 */
export interface Page<Row> {
  readonly data: readonly Row[];
  /** The `cursor` of the next page; null at the end. */
  readonly nextCursor: string | null;
}

/** A list. `await` gives one page; `for await` gives every row, page by page. */
export interface List<Row> extends PromiseLike<Page<Row>>, AsyncIterable<Row> {}

const defaultLimit = 100;

/** Makes a list from a function that reads one page of records. `toRow` leaves out a record by returning null. */
export function listOf<Stored, Row>(
  readPage: (paging: StorePaging) => Promise<StorePage<Stored>>,
  toRow: (stored: Stored) => Row | null,
  paging: Paging = {},
): List<Row> {
  const requested = (): Paging => read(pagingSchema, paging);

  async function first(): Promise<Page<Row>> {
    return page(requested().cursor ?? null);
  }

  async function page(cursor: string | null): Promise<Page<Row>> {
    const { data, nextCursor } = await withStoreErrors(
      readPage({ cursor, limit: requested().limit ?? defaultLimit }),
    );
    return { data: data.flatMap((stored) => toRow(stored) ?? []), nextCursor };
  }
  return {
    // biome-ignore lint/suspicious/noThenProperty: a list is meant to be awaited for its first page.
    then: (resolve, reject) => first().then(resolve, reject),
    async *[Symbol.asyncIterator]() {
      let cursor = requested().cursor ?? null;
      do {
        const { data, nextCursor } = await page(cursor);
        yield* data;
        cursor = nextCursor;
        if (cursor !== null) await yieldToEventLoop();
      } while (cursor !== null);
    },
  };
}

/**
 * Reads pages, ordered by id, of a short list: it reads all rows and cuts out the page. If the filter names an
 * organization, only rows that can count its requests.
 */
export function pagesById<
  Row extends { readonly id: string; readonly scope: Pick<RateLimitScope, "organization"> },
>(listName: string, all: () => Promise<readonly Row[]>, filter: Partial<OrganizationScope>) {
  return async ({ cursor, limit }: StorePaging): Promise<StorePage<Row>> => {
    const { organizationId } = read(budgetFilter, filter, filters);
    const tenant = organizationId === undefined ? null : tenantOf({ organizationId });
    const after = cursor === null ? null : decodeCursor(listName, cursor).tie;
    const rows = (await all())
      .filter(({ scope }) => tenant === null || selects(scope.organization, tenant))
      .filter(({ id }) => after === null || id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    const data = rows.slice(0, limit);
    const last = data.at(-1);
    const hasMore = last !== undefined && rows.length > limit;
    return {
      data,
      nextCursor: hasMore ? encodeCursor(listName, { order: 0, tie: last.id }) : null,
    };
  };
}
