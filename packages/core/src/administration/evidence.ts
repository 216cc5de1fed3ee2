import type {
  CheckpointRepository,
  LeavesOutside,
  LogOwner,
} from "../contracts/checkpoint-repository.ts";
import type { Checkpoint } from "../domain/checkpoint.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import { isVerificationKey, type VerifiedLog, verifyLog } from "../evidence/verify-log.ts";
import { filters, read } from "../input/read.ts";
import { opaqueId, organizationOrAll, text, wholeNumber } from "../input/values.ts";
import * as z from "../input/z.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { evidenceUnavailable } from "../pipeline/store-calls.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method, withStoreErrors } from "./method.ts";
import { everyOrganization, toIso } from "./tenant.ts";

/** A signed state of an organization's evidence log. */
export interface CheckpointRecord {
  /** Null for the log of the leaves that belong to no organization. */
  readonly organizationId: string | null;
  /** Counts the log's checkpoints, from 0. */
  readonly number: number;
  /** How many leaves it covers. */
  readonly size: number;
  readonly at: string;
  /** The signed note (C2SP `tlog-checkpoint`). Null until it is signed. */
  readonly note: string | null;
}

/** Selects checkpoints of one log. */
export interface CheckpointFilter {
  /** Null for the log of the leaves that belong to no organization. */
  readonly organizationId: string | null;
  /** Only from this number on. Default 0. */
  readonly from?: number;
}

/** The logs to verify, and what to verify them with. */
export interface VerifyOptions {
  /** Null for the log of the leaves that belong to no organization. */
  readonly organizationId: string | null | typeof everyOrganization;
  /** Public keys whose signatures count, each as `name+id+key`. Default: the gateway's own. */
  readonly keys?: readonly string[];
  /** Notes of these logs that were kept outside the database. */
  readonly anchors?: readonly string[];
}

/** The result of verifying one organization's log. */
export interface LogRecord extends VerifiedLog {
  /** Null for the log of the leaves that belong to no organization. */
  readonly organizationId: string | null;
}

/** The logs that the evidence is sealed into. */
export interface Evidence {
  /** The public key of `evidence.signer` for verifiers, as `name+id+key`. Null without `evidence`. */
  readonly verificationKey: string | null;
  /**
   * Seals every leaf that waits. Runs automatically while the gateway is open.
   * @throws GatewayError `evidence_unavailable` if the store or the signer fails or a log was changed, with the reason as its
   * `cause`; `invalid_argument` without `evidence`
   */
  seal(): Promise<void>;
  /** A log's checkpoints in order. @throws GatewayError `invalid_argument` */
  checkpoints(filter: CheckpointFilter, paging?: Paging): List<CheckpointRecord>;
  /** The last signed checkpoint of a log, to keep as an anchor; null before the first. */
  latest(log: Pick<CheckpointFilter, "organizationId">): Promise<CheckpointRecord | null>;
  /**
   * Verifies logs against the database: signatures, leaf hashes, density, roots, consistency and anchors, and that every leaf
   * that should be sealed is in its log. Reads every leaf. Without any checkpoint, that is every leaf older than
   * `alarmAfter`.
   * @throws GatewayError `invalid_argument` for an invalid key or without any
   */
  verify(options: VerifyOptions): Promise<readonly LogRecord[]>;
}

const logReference = z.strictObject({ organizationId: z.nullable(opaqueId) });

const checkpointFilter = z.extend(logReference, {
  from: z.exactOptional(wholeNumber(0)),
});

const verificationKey = text(
  isVerificationKey,
  "must be of the form name+id+key, as a gateway shows its own",
);

const verifyOptions = z.strictObject({
  organizationId: z.nullable(organizationOrAll),
  keys: z.exactOptional(z.array(verificationKey)),
  anchors: z.exactOptional(z.array(z.string())),
});

const logsPerPage = 1_000;
const leavesPerPage = 500;
const placesPerPage = 1_000;
/** How long a leaf may wait if this process doesn't seal, in milliseconds. */
const defaultWait = 60_000;
/** Few, because each has a signature to verify before other work of the process runs. */
const checkpointsPerPage = 100;

export function createEvidence(context: GatewayContext, ready: () => Promise<void>): Evidence {
  const { checkpoints } = context.store;
  const own = context.sequencer?.verificationKey ?? null;
  return {
    verificationKey: own,
    async seal() {
      if (context.sequencer === null)
        throw new GatewayError("invalid_argument", "The gateway has no `evidence` to seal with.");
      await ready();
      await context.sequencer.seal().catch(cannotSeal);
    },
    checkpoints: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const { organizationId, from = 0 } = read(checkpointFilter, filter, filters);
          await ready();
          return checkpoints.list({ organizationId: organizationId ?? "", from }, storePaging);
        },
        toCheckpointRecord,
        paging,
      ),
    latest: method(logReference, async ({ organizationId }) => {
      await ready();
      const last = await latestSigned(checkpoints, organizationId ?? "");
      return last && toCheckpointRecord(last);
    }),
    async verify(options) {
      const { organizationId, keys, anchors = [] } = read(verifyOptions, options);
      const trusted = keys ?? (own === null ? [] : [own]);
      if (trusted.length === 0)
        throw invalidArgument(
          "keys",
          "Verifying needs a public key: name one in `keys`, or configure `evidence`.",
        );
      await ready();
      const due = await dueTimes(context);
      const isEvery = organizationId === everyOrganization;
      const logs = isEvery ? allLogs(context) : [{ organizationId: organizationId ?? "" }];
      const verified: LogRecord[] = [];
      const rest = new Set(anchors);
      for await (const owner of logs) {
        const log = owner.organizationId;
        const trust = { keys: trusted, anchors: anchorsOf(log, { keys: trusted, anchors }) };
        for (const anchor of trust.anchors) rest.delete(anchor);
        const result = await withStoreErrors(verifyOne(context, log, { ...trust, due }));
        // A log without a checkpoint may still be waiting for its first one.
        const isToBegin = "sealedAt" in owner && owner.sealedAt === null && result.problem === null;
        if (!isToBegin) verified.push({ organizationId: log === "" ? null : log, ...result });
        await yieldToEventLoop();
      }
      requireNone(rest);
      return verified;
    },
  };
}

function cannotSeal(cause: unknown): never {
  throw evidenceUnavailable(
    cause,
    "Not everything was sealed: the store or the signer failed, or a log was changed. See `cause`.",
  );
}

/** Only the last checkpoint of a log may still be without its signature. */
async function latestSigned(
  checkpoints: CheckpointRepository,
  organizationId: string,
): Promise<Checkpoint | null> {
  const last = await checkpoints.last(organizationId);
  if (last === null || last.note !== null) return last;
  if (last.number === 0) return null;
  const before = { organizationId, from: last.number - 1 };
  return (await checkpoints.list(before, { cursor: null, limit: 1 })).data[0] ?? null;
}

async function* allLogs({ store }: Pick<GatewayContext, "store">): AsyncGenerator<LogOwner> {
  for (let after: string | null = null; ; ) {
    const page: readonly LogOwner[] = await withStoreErrors(
      store.checkpoints.organizations(after, logsPerPage),
    );
    yield* page;
    after = page.at(-1)?.organizationId ?? null;
    if (page.length < logsPerPage) return;
    await yieldToEventLoop();
  }
}

/** Leaves written before or after these times should be sealed. */
interface DueTimes {
  readonly from: number;
  /** Moves on while the logs are read, because they grow meanwhile. */
  to(): number;
}

/**
 * The last checkpoint of any log shows that sealing ran until then, and this process knows how far it sealed itself. So in a
 * copy of the database, or after all processes have ended, the last leaves don't count. A leaf isn't excused by a time in
 * the future. If nothing was ever sealed, or all logs were removed, only the age of a leaf counts.
 */
async function dueTimes(context: GatewayContext): Promise<DueTimes> {
  const { clock, sequencer } = context;
  const wait = sequencer?.alarmAfter ?? defaultWait;
  const now = clock.now();
  let sealedAt = sequencer?.sealedUpTo() ?? 0;
  for await (const owner of allLogs(context)) sealedAt = Math.max(sealedAt, owner.sealedAt ?? 0);
  const from = (sealedAt === 0 ? now : Math.min(sealedAt, now)) - wait;
  return { from, to: () => clock.now() + wait };
}

interface Trust {
  readonly keys: readonly string[];
  readonly anchors: readonly string[];
}

/** The first line of a note names its log. */
function anchorsOf(organizationId: string, { keys, anchors }: Trust): readonly string[] {
  const path = organizationId === "" ? "" : `/organizations/${encodeURIComponent(organizationId)}`;
  const origins = keys.map((key) => (key.split("+")[0] ?? "") + path);
  return anchors.filter((anchor) => origins.includes(anchor.split("\n")[0] ?? ""));
}

/** An anchor of a log that isn't there may be all that is left of it. */
function requireNone(anchors: ReadonlySet<string>): void {
  const [anchor] = anchors;
  if (anchor === undefined) return;
  const [origin = ""] = anchor.split("\n");
  throw invalidArgument(
    "anchors",
    `\`anchors\` has a note of a log that was not found or not asked for: ${origin.slice(0, 400)}`,
  );
}

function verifyOne(
  { store: { checkpoints } }: Pick<GatewayContext, "store">,
  organizationId: string,
  { due, ...trust }: Trust & { readonly due: DueTimes },
): Promise<VerifiedLog> {
  const all = { organizationId, from: 0 };
  return verifyLog({
    ...trust,
    organizationId,
    checkpoints: listOf(
      (page) => checkpoints.list(all, page),
      (row: Checkpoint) => row,
      { limit: checkpointsPerPage },
    ),
    leaves: (from) =>
      listOf(
        (page) => checkpoints.leaves({ organizationId, from }, page),
        (row) => row,
        { limit: leavesPerPage },
      ),
    async outside(size) {
      let [count, since] = [0, Number.POSITIVE_INFINITY];
      for (let after: number | null = null; ; ) {
        const found: LeavesOutside = await checkpoints.outside({
          organizationId,
          size,
          from: due.from,
          to: due.to(),
          after,
          limit: placesPerPage,
        });
        count += found.count;
        since = Math.min(since, found.since ?? since);
        if (found.next === null) return { count, since: count === 0 ? null : since };
        after = found.next;
        await yieldToEventLoop();
      }
    },
  });
}

function toCheckpointRecord({
  organizationId,
  number,
  size,
  at,
  note,
}: Checkpoint): CheckpointRecord {
  return {
    organizationId: organizationId === "" ? null : organizationId,
    number,
    size,
    at: toIso(at),
    note,
  };
}
