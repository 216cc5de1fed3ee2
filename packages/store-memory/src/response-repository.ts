import type { Owner, ResponseRepository } from "@tollgate/core/store";
import {
  deleteResponse,
  isOwnedBy,
  type ResponseRecord,
  sweepResponses,
} from "@tollgate/store-engine";
import type { CarryOut } from "./carry-out.ts";
import { copyOf } from "./responses.ts";
import type { State } from "./state.ts";

export function createResponseRepository(
  { responses }: State,
  carryOut: CarryOut,
): ResponseRepository {
  const find = (owner: Owner, id: string, at: number): ResponseRecord | null => {
    const row = responses.response(owner.organizationId, id);
    return row && isOwnedBy(owner, row) && row.expiresAt > at ? row : null;
  };
  return {
    async get(owner, id, at) {
      const row = find(owner, id, at);
      return row && copyOf(row);
    },
    async history(owner, id, at) {
      const row = find(owner, id, at);
      if (!row) return null;
      const parts = responses
        .chain(row)
        .flatMap(({ inherited, messages }) => [inherited, messages])
        .map((bytes) => new Uint8Array(bytes));
      return { response: copyOf(row), messages: parts };
    },
    delete: async (deletion) => carryOut((view) => deleteResponse(view, deletion)),
    sweep: async (query) => carryOut((view) => sweepResponses(view, query)),
  };
}
