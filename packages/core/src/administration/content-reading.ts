import { highestClass, rankOf } from "../domain/data-class.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import { requireClass } from "../identity/key-arguments.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { reportChange } from "./changes.ts";
import type { WithActor } from "./keys.ts";
import type { OrganizationScope } from "./tenant.ts";

/** Recorded content to read, and who reads it. Every reading is recorded, as a change of kind `transcript.read`. */
export interface ContentReference extends OrganizationScope, WithActor {
  /** The id of the Step or the Session. */
  readonly id: string;
  /** The most sensitive data class that the reader may see. Default: every class. */
  readonly upTo?: string;
}

/** The content that someone is about to see. */
interface ReadContent {
  readonly organizationId: string;
  readonly dataClasses: readonly string[];
  /** Null for a Step without a Session. */
  readonly session: string | null;
  /** Absent for a transcript. */
  readonly step?: string;
  /** The position of the first message in the transcript. Absent for a Step. */
  readonly from?: number;
  /** The number of messages. */
  readonly count: number;
}

/**
 * Records that someone reads content. Call it before you release the content: if it fails, nobody may see it.
 * @throws GatewayError `admin_forbidden` if the content has a data class above `upTo`
 */
export async function recordReading(
  context: GatewayContext,
  content: ReadContent,
  { actor, upTo }: Pick<ContentReference, "actor" | "upTo">,
): Promise<void> {
  const { store, dataClasses } = context;
  const { organizationId, dataClasses: classes, ...subject } = content;
  if (upTo !== undefined) {
    const highest = highestClass(dataClasses, classes) ?? dataClasses[0] ?? "";
    const allowed = rankOf(dataClasses, requireClass(dataClasses, "upTo", upTo));
    if (rankOf(dataClasses, highest) > allowed)
      throw new GatewayError(
        "admin_forbidden",
        `This content has the data class ${highest}, and you may read up to ${upTo}.`,
      );
  }
  const place = { kind: "transcript.read", organizationId, actor } as const;
  const leaf = changeLeaf(context, place, subject);
  await store.evidence.record(leaf);
  reportChange(context, leaf);
}
