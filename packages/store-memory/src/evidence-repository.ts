import type { ChangeQuery, EvidenceLeaf, EvidenceRepository } from "@tollgate/core/store";
import type { State } from "./state.ts";
import { mapPage } from "./table.ts";

export function createEvidenceRepository(state: State): EvidenceRepository {
  return {
    async list({ organizationId: tenant }, paging) {
      const page = state.leaves.page({ direction: "oldest-first", tenant }, paging);
      return mapPage(page, copyOf);
    },
    async changes(query, paging) {
      const page = state.changes.page(
        {
          direction: "newest-first",
          tenant: query.organizationId,
          matches: (leaf) => isAsked(leaf, query),
        },
        paging,
      );
      return mapPage(page, copyOf);
    },
    async notePolicy({ version, leaf }) {
      if (state.policyVersion === version) return;
      state.leaves.insert(leaf(state.policyVersion));
      state.policyVersion = version;
    },
  };
}

function isAsked({ kind, at }: EvidenceLeaf, { kind: kinds, from, to }: ChangeQuery): boolean {
  return (
    (kinds?.includes(kind) ?? true) &&
    (from === undefined || at >= from) &&
    (to === undefined || at < to)
  );
}

function copyOf(leaf: EvidenceLeaf): EvidenceLeaf {
  return { ...leaf, hash: Uint8Array.from(leaf.hash) };
}
