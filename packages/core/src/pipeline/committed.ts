import type { CommittedContent } from "../contracts/step-verbs.ts";
import { commitContent } from "../domain/leaf-template.ts";
import type { GatewayContext } from "./context.ts";

/** Content with its commitment, without its bytes if the policy keeps only digests. */
export function committed(
  { ids }: GatewayContext,
  content: Uint8Array,
  isKept: boolean,
): CommittedContent {
  const contentSalt = ids.bytes(32);
  return {
    content: isKept ? content : null,
    contentSalt,
    contentCommitment: commitContent(contentSalt, content),
  };
}
