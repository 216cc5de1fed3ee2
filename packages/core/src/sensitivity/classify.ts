import type { Caller } from "../domain/caller.ts";
import { rankOf } from "../domain/data-class.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Data classes in order, the least sensitive first. */
export const defaultDataClasses = [
  "D0_PUBLIC",
  "D1_INTERNAL",
  "D2_CONFIDENTIAL",
  "D3_RESTRICTED",
] as const;

/**
 * The effective data class: the header's, else the key's default. It is never below the key's floor, whose order may have
 * changed since, nor the class of a response that the request refers to (section 5.3), nor its Session's class if the
 * policy raises requests to it.
 * @throws GatewayError `invalid_data_class` or `data_class_below_floor`. A header is never raised silently.
 */
export function classify(
  header: { readonly name: string; readonly value: string | null },
  caller: Caller,
  {
    dataClasses,
    referred,
    session,
  }: {
    readonly dataClasses: readonly string[];
    /** The class of the response that the request refers to; null for none. */
    readonly referred: string | null;
    /** The class of the Session that it continues, if the policy raises requests to it; null otherwise. */
    readonly session: string | null;
  },
): string {
  const rank = (dataClass: string | null): number =>
    dataClass === null ? -1 : rankOf(dataClasses, dataClass);
  const { defaultDataClass: usual, minimumDataClass: floor } = caller;
  if (header.value === null) {
    const highest = Math.max(rank(usual), rank(floor), rank(referred), rank(session));
    return dataClasses[highest] ?? usual;
  }
  const asked = dataClasses.indexOf(header.value);
  if (asked < 0) {
    throw new GatewayError(
      "invalid_data_class",
      `The data class must be one of ${dataClasses.join(", ")}.`,
      {
        param: header.name,
      },
    );
  }
  if (asked < rank(floor)) throw belowFloor(header.name, `the key's minimum ${floor}`);
  if (asked < rank(referred))
    throw belowFloor(header.name, "the class of the response it refers to");
  if (asked < rank(session))
    throw belowFloor(header.name, `the class of the Session it continues, ${session}`);
  return header.value;
}

function belowFloor(param: string, floor: string): GatewayError {
  return new GatewayError("data_class_below_floor", `The data class is below ${floor}.`, { param });
}
