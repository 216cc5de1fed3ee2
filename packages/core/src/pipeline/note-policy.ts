import { createLeaf } from "../evidence/leaves.ts";
import type { Line } from "./line.ts";

/** Records that another policy decides from now on, once: of no organization, and by nobody that is known. */
export async function notePolicy({ store, policy, ids, clock }: Line): Promise<void> {
  const { version } = policy;
  const id = ids.uuid();
  await store.evidence.notePolicy({
    version,
    leaf: (before) =>
      createLeaf(
        { id, organizationId: "", kind: "policy.changed", at: clock.now() },
        { actor: null, before, policy: version },
      ),
  });
}
