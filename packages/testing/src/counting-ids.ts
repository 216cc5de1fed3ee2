import { hash } from "node:crypto";
import type { IdSource } from "@tollgate/core";

/**
 * Predictable ids: ascending UUIDs, and bytes derived from a counter, the same in every run. Sources with different
 * `series` (0 to 65,535) never return the same id, so several gateways can share a store.
 */
export function countingIds(series = 0): IdSource {
  let uuids = 0;
  let draws = 0;
  const group = series.toString(16).padStart(4, "0");
  return {
    uuid: () => `00000000-${group}-7000-8000-${(++uuids).toString(16).padStart(12, "0")}`,
    bytes(length) {
      const draw = ++draws;
      const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, block) =>
        hash("sha256", `${series}/${draw}/${block}`, "buffer"),
      );
      return new Uint8Array(Buffer.concat(blocks).subarray(0, length));
    },
  };
}
