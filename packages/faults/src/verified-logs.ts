import { everyOrganization, type Gateway } from "@tollgate/core";

/** The result of verifying all evidence logs. */
export interface VerifiedLogs {
  readonly problems: readonly string[];
  /** The notes of their last checkpoints, for the next verification. */
  readonly anchors: readonly string[];
  /** How many leaves of organizations they cover. */
  readonly leaves: number;
}

/** Verifies all logs, and that they contain the checkpoints of these notes. */
export async function verifyLogs({ evidence }: Gateway, anchors: unknown): Promise<VerifiedLogs> {
  const notes = Array.isArray(anchors) ? anchors.map(String) : [];
  const logs = await evidence.verify({ organizationId: everyOrganization, anchors: notes });
  const last = await Promise.all(
    logs.map(({ organizationId }) => evidence.latest({ organizationId })),
  );
  return {
    problems: logs.flatMap(({ organizationId, problem }) =>
      problem === null ? [] : [`the log of ${organizationId}: ${problem.message}`],
    ),
    anchors: last.flatMap((checkpoint) => checkpoint?.note ?? []),
    leaves: logs.reduce(
      (sum, { organizationId, size }) => (organizationId === null ? sum : sum + size),
      0,
    ),
  };
}

export function isVerifiedLogs(value: unknown): value is VerifiedLogs {
  return (
    typeof value === "object" &&
    value !== null &&
    Array.isArray(Reflect.get(value, "problems")) &&
    Array.isArray(Reflect.get(value, "anchors")) &&
    Number.isSafeInteger(Reflect.get(value, "leaves"))
  );
}
