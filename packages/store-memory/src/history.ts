import {
  createUsageFold,
  type DecisionQuery,
  type DecisionRepository,
  type EvidenceLeaf,
  type EvidenceRepository,
  type LapsedSteps,
  type LeaseRenewal,
  lowerAscii,
  type Owner,
  type ResponseRepository,
  type Session,
  type SessionQuery,
  type SessionRepository,
  type Step,
  type StepContents,
  type StepQuery,
  type StepRepository,
  type Store,
  type StorePage,
  type StorePaging,
  type Tenant,
  type TranscriptPart,
  type UsageHour,
  type UsageRepository,
  yieldToEventLoop,
} from "@tollgate/core/store";
import {
  deleteResponse,
  findSession,
  isOwnedBy,
  lineageOf,
  type ResponseRecord,
  type SessionState,
  stepContents,
  sweepResponses,
  sweepSteps,
  sweepTranscripts,
  transcriptPart,
  withCorrections,
  withErrors,
} from "@tollgate/store-engine";
import type { CarryOut } from "./apply-change.ts";
import { mapPage, type Place, sealedPage, sortedPage } from "./page.ts";
import {
  copyResponse,
  type DecisionRow,
  insertLeaf,
  keyOf,
  type LeafRow,
  organizationsAfter,
  type State,
  type StepRow,
  turnOf,
} from "./state.ts";
import type { RowWithCursor } from "./table.ts";
import { viewOf } from "./view.ts";

export function createSessionRepository(state: State, carryOut: CarryOut): SessionRepository {
  return {
    async get(organizationId, id) {
      const row = state.sessions.get(organizationId, id);
      return row && sessionOf(row.record);
    },
    list: async (query, paging) => mapPage(sessionPage(state, query, paging), sessionOf),
    async transcript(organizationId, id, from = 0, to = Number.MAX_SAFE_INTEGER) {
      const row = state.sessions.get(organizationId, id);
      return row && transcriptOf(state, row.record, { from, to });
    },
    find: async (lookup) => findSession(viewOf(state), lookup),
    async isOwned(owner, sessionId) {
      const row = state.sessions.get(owner.organizationId, sessionId);
      return row !== null && isOwnedBy(owner, row.record);
    },
    async findByTurn(owner, turnId) {
      const row = turnOf(state, { organizationId: owner.organizationId, id: turnId });
      return row && isOwnedBy(owner, row) ? row.sessionId : null;
    },
    sweep: async (sweep) => carryOut((view) => sweepTranscripts(view, sweep)),
  };
}

function sessionOf(record: SessionState): Session {
  const { updated, inFlight, turnId, rootSessionId, historyFromSessionId, ...session } = record;
  return session;
}

/** Selects rows of an organization, or of all, newest first, for readers who may know nothing about others. */
function newestOf<Row>(
  { cursorSecret: secret }: State,
  { organizationId: tenant }: { readonly organizationId: Tenant },
  matches: (row: Row) => boolean,
) {
  return { direction: "newest-first", tenant, matches, secret } as const;
}

function sessionPage(
  { sessions, cursorSecret: secret }: State,
  { organizationId: tenant, userId, keyId, source }: SessionQuery,
  paging: StorePaging,
): StorePage<SessionState> {
  const matches = (record: SessionState): boolean =>
    (userId === undefined || record.userId === userId) &&
    (keyId === undefined || record.keyId === keyId) &&
    (source === undefined || record.source === source);
  const rows = sessions.all({ tenant }).map(({ record }) => record);
  const placeOf = ({ updated }: SessionState): Place => ({ order: updated, tie: "" });
  const compare = (a: Place, b: Place): number => b.order - a.order;
  const name = "sessions";
  return sealedPage({ name, tenant, secret }, paging, (plain) =>
    sortedPage({ name, rows, matches, placeOf, compare }, plain),
  );
}

/** The parts of a Session and those it branched from that have messages of a range. */
function transcriptOf(
  state: State,
  record: SessionState,
  range: { readonly from: number; readonly to: number },
): readonly TranscriptPart[] {
  return lineageOf(viewOf(state), record).flatMap(({ session, end }) => {
    const parts = state.sessions.get(session.organizationId, session.id)?.parts ?? [];
    return parts.flatMap((part) => {
      const { position, count } = part;
      const isWithin = position !== null && position < Math.min(end, range.to);
      return isWithin && position + count > range.from
        ? [transcriptPart({ ...part, position, content: bytesOf(part.content) }, end)]
        : [];
    });
  });
}

export function createStepRepository(state: State, carryOut: CarryOut): StepRepository {
  return {
    async get(organizationId, id) {
      const row = state.steps.get(organizationId, id);
      return row && stepOfRow(row);
    },
    async list(query, paging) {
      const matches = ({ record }: StepRow) => matchesStepQuery(record.step, query);
      const asked = newestOf(state, query, matches);
      return mapPage(state.steps.page(asked, paging), stepOfRow);
    },
    async summarize(query, paging) {
      const matches = ({ record }: StepRow) => matchesSummaryQuery(record.step, query);
      const asked = newestOf(state, query, matches);
      const page = state.steps.page(asked, paging);
      const fold = createUsageFold(query.by, query);
      for (const row of page.data) fold.addStep(stepOfRow(row));
      return { groups: fold.groups(), nextCursor: page.nextCursor };
    },
    async contents(organizationId, id) {
      const row = state.steps.get(organizationId, id);
      return row && contentsOf(state, row);
    },
    sweep: async (sweep) => carryOut((view) => sweepSteps(view, sweep)),
  };
}

export function createUsageRepository(state: State): UsageRepository {
  return {
    async unfolded({ after, limit }) {
      // Its rows aren't sorted by organization, so looking for Steps to fold costs as much as folding.
      const organizations = organizationsAfter(state, after, limit);
      const isLast = organizations.length < limit;
      return { organizations, next: isLast ? null : (organizations.at(-1) ?? null) };
    },
    mark: async (organizationId) => state.usageMarks.get(organizationId) ?? null,
    async steps({ organizationId, to = Number.POSITIVE_INFINITY }, paging) {
      const matches = ({ record }: StepRow) => record.step.openedAt < to;
      const query = { direction: "oldest-first", tenant: organizationId, matches } as const;
      const found: RowWithCursor<StepRow>[] = [];
      // A page may end early, but Steps that its reader does not get count as folded.
      for (let { cursor, limit } = paging; ; limit = paging.limit - found.length) {
        const page = state.steps.pageWithCursors(query, { ...paging, cursor, limit });
        found.push(...page.data);
        cursor = page.nextCursor;
        if (cursor === null || found.length === paging.limit) break;
        await yieldToEventLoop();
      }
      return {
        steps: found.map(({ row }) => row.record.step),
        cursorOf: (index) => found[index]?.cursor ?? "",
      };
    },
    async add({ organizationId, after, mark, hours }) {
      if ((state.usageMarks.get(organizationId) ?? null) !== after) return false;
      for (const hour of hours) state.usage[hour.detail].insert(hour);
      state.usageMarks.set(organizationId, mark);
      return true;
    },
    async hours({ organizationId, detail, from = Number.NEGATIVE_INFINITY, to }, paging) {
      const matches = ({ hour }: UsageHour) =>
        hour >= from && hour < (to ?? Number.POSITIVE_INFINITY);
      const query = { direction: "oldest-first", tenant: organizationId, matches } as const;
      return state.usage[detail].page(query, paging);
    },
  };
}

function contentsOf(state: State, { id, organizationId, record }: StepRow): StepContents {
  const { sessionId } = record.step;
  const session = sessionId === null ? null : state.sessions.get(organizationId, sessionId);
  const own = session?.parts.filter(({ stepId }) => stepId === id) ?? [];
  return stepContents(new Map(own.map(({ kind, content }) => [kind, bytesOf(content)])));
}

function bytesOf(content: string | null): Uint8Array | null {
  return content === null ? null : Uint8Array.from(Buffer.from(content, "latin1"));
}

function matchesStepQuery(step: Step, query: StepQuery): boolean {
  const attempt = step.attempts.at(-1);
  return (
    matchesSummaryQuery(step, query) &&
    isOneOf(query.gateway, attempt?.gateway) &&
    isOneOf(query.vendor, attempt?.vendor) &&
    isOneOf(query.model, attempt && lowerAscii(attempt.model)) &&
    isOneOf(query.connection, attempt?.connection) &&
    isOneOf(query.host, attempt?.end?.host)
  );
}

/** Whether a Step matches the filters that don't concern its attempts. */
function matchesSummaryQuery(step: Step, query: StepQuery): boolean {
  return (
    isWithin(step.openedAt, query) &&
    isOneOf(query.userId, step.userId) &&
    isOneOf(query.keyId, step.keyId) &&
    isOneOf(query.sessionId, step.sessionId) &&
    isOneOf(query.turnId, step.turnId) &&
    isOneOf(query.source, step.source) &&
    isOneOf(query.endpoint, step.endpoint) &&
    isOneOf(query.dataClass, step.dataClass) &&
    isOneOf(query.decisionId, step.decisionId) &&
    Object.entries(query.metadata ?? {}).every(
      ([name, value]) => Object.hasOwn(step.metadata, name) && step.metadata[name] === value,
    ) &&
    isOneOf(query.outcome, step.outcome ?? "open")
  );
}

/** A Step with its corrections, and with its providers' error messages while they are kept. */
function stepOfRow({ record: { step }, errors, corrections }: StepRow): Step {
  return withErrors(withCorrections(step, corrections), errors);
}

export function createDecisionRepository(state: State): DecisionRepository {
  return {
    get: async (organizationId, id) => state.decisions.get(organizationId, id)?.decision ?? null,
    async list(query, paging) {
      const matches = (row: DecisionRow) => matchesDecisionQuery(row, query);
      const asked = newestOf(state, query, matches);
      return mapPage(state.decisions.page(asked, paging), ({ decision }) => decision);
    },
  };
}

function matchesDecisionQuery(
  { userId, keyId, decision }: DecisionRow,
  query: DecisionQuery,
): boolean {
  return (
    isWithin(decision.at, query) &&
    isOneOf(query.userId, userId) &&
    isOneOf(query.keyId, keyId) &&
    (query.effect === undefined || query.effect === decision.effect) &&
    (query.refused === undefined || query.refused === (decision.refusal !== null)) &&
    isOneOf(query.refusedBy, decision.refusal?.by)
  );
}

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
      return row && copyResponse(row);
    },
    async history(owner, id, at) {
      const row = find(owner, id, at);
      if (!row) return null;
      const parts = responses
        .chain(row)
        .flatMap(({ inherited, messages }) => [inherited, messages])
        .map((bytes) => new Uint8Array(bytes));
      return { sessionId: row.sessionId, dataClass: row.dataClass, messages: parts };
    },
    delete: async (deletion) => carryOut((view) => deleteResponse(view, deletion)),
    sweep: async (query) => carryOut((view) => sweepResponses(view, query)),
  };
}

export function createEvidenceRepository(state: State): EvidenceRepository {
  return {
    async list({ organizationId: tenant }, paging) {
      const page = state.leaves.page({ direction: "oldest-first", tenant }, paging);
      return mapPage(page, leafOf);
    },
    async changes(query, paging) {
      const matches = ({ at, kind }: LeafRow) => isWithin(at, query) && isOneOf(query.kind, kind);
      const asked = newestOf(state, query, matches);
      return mapPage(state.changes.page(asked, paging), leafOf);
    },
    async record(leaf) {
      insertLeaf(state, leaf);
    },
    async notePolicy({ version, leaf }) {
      if (state.policyVersion === version) return;
      insertLeaf(state, leaf(state.policyVersion));
      state.policyVersion = version;
    },
  };
}

export function leafOf(row: LeafRow): EvidenceLeaf {
  return { ...row, hash: new Uint8Array(Buffer.from(row.hash, "hex")) };
}

export function renewLease(state: State, lease: LeaseRenewal): void {
  const { processId, renewal, until, steps } = lease;
  // A later renewal arrived first.
  if ((state.leases.get(processId)?.renewal ?? 0) > renewal) return;
  state.leases.set(processId, { renewal, until });
  const progress = new Map(
    steps.map(({ organizationId, stepId: id, outputTokens }) => [
      keyOf({ organizationId, id }),
      outputTokens,
    ]),
  );
  for (const row of state.openSteps.all()) {
    const outputTokens = progress.get(keyOf(row));
    if (row.record.processId !== processId || outputTokens === undefined) continue;
    row.outputTokens = outputTokens;
    row.lastRenewal = renewal;
  }
}

export function lapsedSteps(
  state: State,
  { at, after, limit }: Parameters<Store["lapsedSteps"]>[0],
): LapsedSteps {
  const lapsed = state.openSteps
    .all()
    .filter((row) => row.opened > (after ?? -1) && isLapsed(state, row, at))
    .sort((first, second) => first.opened - second.opened)
    .slice(0, limit);
  const last = lapsed.length < limit ? undefined : lapsed.at(-1);
  return {
    steps: lapsed.map((row) => ({ step: stepOfRow(row), outputTokens: row.outputTokens })),
    damaged: [],
    next: last?.opened ?? null,
  };
}

function isLapsed(state: State, row: StepRow, at: number): boolean {
  const lease = state.leases.get(row.record.processId);
  if (!lease || lease.until <= at) return true;
  return lease.renewal > row.renewal && row.lastRenewal !== lease.renewal;
}

function isWithin(
  at: number,
  { from, to }: { readonly from?: number; readonly to?: number },
): boolean {
  return (from === undefined || at >= from) && (to === undefined || at < to);
}

function isOneOf(values: readonly string[] | undefined, value: string | null | undefined): boolean {
  return values === undefined || (value != null && values.includes(value));
}
