import type { ResponseRepository } from "@tollgate/core/store";
import type { State } from "./state.ts";

export function createResponseRepository(state: State): ResponseRepository {
  return {
    get: async (owner, id, at) => state.responses.get(owner, id, at),
    history: async (owner, id, at) => state.responses.history(owner, id, at),
    async delete({ owner, id, at, leaf }) {
      if (!state.responses.remove(owner, id, at)) return false;
      state.leaves.insert(leaf);
      return true;
    },
    sweep: async ({ at, limit }) => state.responses.sweep(at, limit),
  };
}
