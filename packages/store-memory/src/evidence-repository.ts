import type { ChangeQuery, EvidenceLeaf, EvidenceRepository } from "@tollgate/core/store";
import type { LeafRow, State } from "./state.ts";
import { mapPage } from "./table.ts";

export function createEvidenceRepository(state: State): EvidenceRepository {
  return {
    async list({ organizationId: tenant }, paging) {
      const page = state.leaves.page({ direction: "oldest-first", tenant }, paging);
      return mapPage(page, leafOf);
    },
    async changes(query, paging) {
      const page = state.changes.page(
        {
          direction: "newest-first",
          tenant: query.organizationId,
          matches: (leaf) => matchesQuery(leaf, query),
        },
        paging,
      );
      return mapPage(page, leafOf);
    },
    async notePolicy({ version, leaf }) {
      if (state.policyVersion === version) return;
      state.leaves.insert(leaf(state.policyVersion));
      state.policyVersion = version;
    },
  };
}

function matchesQuery({ kind, at }: LeafRow, { kind: kinds, from, to }: ChangeQuery): boolean {
  return (
    (kinds?.includes(kind) ?? true) &&
    (from === undefined || at >= from) &&
    (to === undefined || at < to)
  );
}

function leafOf(row: LeafRow): EvidenceLeaf {
  return { ...row, hash: new Uint8Array(Buffer.from(row.hash, "hex")) };
}
