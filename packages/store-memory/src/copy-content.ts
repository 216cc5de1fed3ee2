import type { CommittedContent } from "@tollgate/core/store";

/** Content with bytes of its own, so that nobody else's change of them is seen. */
export function copyOf(content: CommittedContent): CommittedContent {
  return {
    content: content.content && new Uint8Array(content.content),
    contentSalt: new Uint8Array(content.contentSalt),
    contentCommitment: new Uint8Array(content.contentCommitment),
  };
}
