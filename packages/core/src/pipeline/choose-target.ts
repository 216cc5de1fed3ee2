import { formatModelId } from "../domain/model-id.ts";
import type { PassedOver, TargetChoice } from "../domain/policy-decision.ts";
import type { Clock } from "../kernel/clock.ts";
import { sha256 } from "../kernel/digest.ts";
import type { IdSource } from "../kernel/ids.ts";
import type { ModelRoute, RoutedTarget, TargetRoute, VirtualRoute } from "../routing/route.ts";
import { accountOf, type ModelAccount, type Upstream } from "./upstreams.ts";

/** The least latency of a failed attempt, or a provider that fails fast would be the fastest. Milliseconds. */
const failedMs = 10_000;
/** A latency that nobody confirmed for this long is forgotten, so a slow target gets another chance. Milliseconds. */
const freshMs = 300_000;
/** The weight of the newest latency in the average. */
const newest = 0.3;
/** How many latencies a process remembers. Organizations with their own accounts have one each. */
const maxLatencies = 10_000;

interface Latency {
  milliseconds: number;
  at: number;
}

interface Span {
  readonly asked: number;
  readonly now: number;
}

/**
 * The average times to first output of models, separately for each account, and for streams and plain answers. Each
 * process has its own. Times are monotonic, in milliseconds.
 */
export class Latencies {
  readonly #models: ReadonlySet<string>;
  readonly #known = new Map<string, Latency>();

  constructor(models: ReadonlySet<string>) {
    this.#models = models;
  }

  /** Null if it isn't known; infinity while the first call finds it out. */
  of(account: ModelAccount, stream: boolean, now: number): number | null {
    const known = this.#known.get(nameOf(account, stream));
    return known === undefined || now - known.at > freshMs ? null : known.milliseconds;
  }

  /**
   * A call asks a model. Returns whether it is the one that finds out the latency. Until it has, other calls don't
   * prefer the model for having no latency.
   */
  asked(account: ModelAccount, stream: boolean, now: number): boolean {
    if (!this.#models.has(account.model) || this.of(account, stream, now) !== null) return false;
    this.#set(nameOf(account, stream), { milliseconds: Number.POSITIVE_INFINITY, at: now });
    return true;
  }

  /** The call that was to find out the latency has ended. If it didn't, the next call tries. */
  ended(account: ModelAccount, stream: boolean): void {
    const name = nameOf(account, stream);
    if (this.#known.get(name)?.milliseconds === Number.POSITIVE_INFINITY) this.#known.delete(name);
  }

  answered(account: ModelAccount, stream: boolean, { asked, now }: Span): void {
    if (!this.#models.has(account.model)) return;
    const name = nameOf(account, stream);
    const known = this.#known.get(name);
    const average = known && Number.isFinite(known.milliseconds) ? known.milliseconds : now - asked;
    const milliseconds = average + newest * (now - asked - average);
    this.#set(name, { milliseconds, at: now });
  }

  failed(account: ModelAccount, stream: boolean, { asked, now }: Span): void {
    this.answered(account, stream, { asked: Math.min(asked, now - failedMs), now });
  }

  /** Makes room by forgetting the one that was set longest ago. */
  #set(name: string, latency: Latency): void {
    this.#known.delete(name);
    const [oldest] = this.#known.size < maxLatencies ? [] : this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(name, latency);
  }
}

function nameOf({ name }: ModelAccount, stream: boolean): string {
  return `${stream ? "stream" : "plain"} ${name}`;
}

/** The latencies of the targets that are chosen by latency; null if none is. */
export function createLatencies(virtualModels: readonly VirtualRoute[]): Latencies | null {
  const models = virtualModels
    .filter(({ by }) => by === "latency")
    .flatMap(({ targets }) => targets.map(({ route }) => formatModelId(route.model)));
  return models.length === 0 ? null : new Latencies(new Set(models));
}

interface RankedTarget {
  readonly route: ModelRoute;
  readonly latencyMs: number | null;
}

/** The targets of one call in the order of choice, and why earlier ones were passed over. */
export class TargetSelection {
  readonly targets: readonly RankedTarget[];
  /** The Session that the call would begin: its targets are in the order of this Session. */
  readonly newSessionId: string;
  readonly #requested: string;
  readonly #virtual: string | null;
  readonly #by: TargetChoice["by"];
  readonly #passedOver: PassedOver[] = [];

  constructor(
    requested: string,
    virtual: string | null,
    order: {
      readonly by: TargetChoice["by"];
      readonly targets: readonly RankedTarget[];
      readonly newSessionId: string;
    },
  ) {
    this.#requested = requested;
    this.#virtual = virtual;
    this.#by = order.by;
    this.targets = order.targets;
    this.newSessionId = order.newSessionId;
  }

  /** The ids of the targets that come after one. */
  after({ model }: ModelRoute): readonly string[] {
    const ids = this.targets.map(({ route }) => formatModelId(route.model));
    return ids.slice(ids.indexOf(formatModelId(model)) + 1);
  }

  passOver(model: string, reason: string, decisionId: string | null): void {
    if (this.#find(model)) this.#passedOver.push({ model, reason, decisionId });
  }

  /** Why the model is chosen now; null if it isn't a target. */
  choiceOf(route: ModelRoute): TargetChoice | null {
    const id = formatModelId(route.model);
    const target = this.#find(id);
    if (target === undefined) return null;
    const { latencyMs } = target;
    return {
      requested: this.#requested,
      virtual: this.#virtual,
      by: this.#by,
      latencyMs: latencyMs === null || !Number.isFinite(latencyMs) ? null : Math.round(latencyMs),
      passedOver: this.#passedOver.filter(({ model }) => model !== id),
    };
  }

  #find(model: string): RankedTarget | undefined {
    return this.targets.find(({ route }) => formatModelId(route.model) === model);
  }
}

/** The parts of the gateway that a choice depends on. */
interface ChoosingGateway {
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly latencies: Latencies | null;
  readonly upstreams: ReadonlyMap<string, Upstream> | null;
}

/** A call that is about to choose. */
interface ChoosingCall {
  readonly requested: string;
  readonly organizationId: string;
  readonly stream: boolean;
  /** The Session that it continues; null for a new one. */
  readonly sessionId: string | null;
}

/** Puts the targets behind a name in the order of choice. Those with an open breaker come last. */
export function selectTarget(
  context: ChoosingGateway,
  { id, by, targets }: TargetRoute,
  { requested, organizationId, stream, sessionId }: ChoosingCall,
): TargetSelection {
  const newSessionId = context.ids.uuid();
  const session = sessionId ?? newSessionId;
  const ranked = rank(context, { by, targets, organizationId, stream, session });
  const isBroken = ({ route }: RankedTarget): boolean =>
    context.upstreams?.get(route.model.gateway)?.declines(route, organizationId) ?? false;
  const broken = ranked.filter(isBroken);
  const order =
    broken.length === 0 ? ranked : [...ranked.filter((one) => !isBroken(one)), ...broken];
  const selection = new TargetSelection(requested, id, { by, targets: order, newSessionId });
  for (const target of broken.length === ranked.length ? [] : ranked) {
    if (!isBroken(target)) break;
    selection.passOver(formatModelId(target.route.model), "breaker_open", null);
  }
  return selection;
}

function rank(
  { ids, latencies, clock }: ChoosingGateway,
  {
    by,
    targets,
    organizationId,
    stream,
    session,
  }: {
    readonly by: TargetRoute["by"];
    readonly targets: readonly RoutedTarget[];
    readonly organizationId: string;
    readonly stream: boolean;
    readonly session: string;
  },
): readonly RankedTarget[] {
  switch (by) {
    case "alias":
    case "order":
      return targets.map(({ route }) => ({ route, latencyMs: null }));
    case "weight":
      return byWeight(targets, () => ids.bytes(6));
    case "session":
      return byWeight(targets, ({ model }) => sha256(`${session} ${formatModelId(model)}`));
    case "latency": {
      const now = clock.monotonic();
      return targets
        .map(({ route }) => {
          const latencyMs = latencies?.of(accountOf(route, organizationId), stream, now) ?? null;
          return { route, latencyMs };
        })
        .toSorted((one, other) => compare(one.latencyMs ?? -1, other.latencyMs ?? -1));
    }
  }
}

function compare(one: number, other: number): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/**
 * Draws the targets in an order in which each is first with the probability of its weight. Draws from a hash of the Session
 * (rendezvous hashing) are the same in every process, and when a target is added, only its own share of the Sessions moves.
 */
function byWeight(
  targets: readonly RoutedTarget[],
  draw: (route: ModelRoute) => Uint8Array,
): readonly RankedTarget[] {
  return targets
    .map(({ route, weight }) => {
      const drawn = Buffer.from(draw(route)).readUIntBE(0, 6);
      return { route, wait: -Math.log((drawn + 1) / (2 ** 48 + 1)) / weight };
    })
    .toSorted((one, other) => compare(one.wait, other.wait))
    .map(({ route }) => ({ route, latencyMs: null }));
}
