import { administrationSchemas, pagingSchema } from "@tollgate/core/administration";
import { type Schema, z } from "@tollgate/core/schemas";
import * as records from "./records.ts";

/** The members of a schema without the actor, which is who signed in. */
export function membersOf<Shape extends { readonly actor: unknown }>({
  shape,
}: {
  readonly shape: Shape;
}): Omit<Shape, "actor"> {
  const { actor: _actor, ...members } = shape;
  return members;
}

/** The schemas of the methods in process, by name. */
export const schemas = administrationSchemas;
/** The parameters of a page. */
export const paging = pagingSchema.shape;

/** A whole list, which isn't paged. */
export function allOf<Row>(row: Schema<Row>) {
  return z.object({ data: records.listOf(row) });
}

/** One page of a list. */
export function pageOf<Row>(row: Schema<Row>) {
  return z.object({ data: records.listOf(row), nextCursor: z.nullable(z.string()) });
}

/** The answer of DELETE. */
export const deleted = z.object({ id: z.string(), deleted: z.literal(true) });

/** Splits the parameters of a list into its filter and its page. */
export function split<Input extends { readonly cursor?: string | null; readonly limit?: number }>({
  cursor,
  limit,
  ...filter
}: Input) {
  const page = {
    ...(cursor === undefined ? {} : { cursor }),
    ...(limit === undefined ? {} : { limit }),
  };
  return { filter, page };
}
