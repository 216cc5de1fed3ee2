import type { CheckpointRepository, UnsealedLogs } from "../contracts/checkpoint-repository.ts";
import type { EvidenceSigner } from "../contracts/evidence-signer.ts";
import type { GatewayEvent } from "../contracts/observer.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { Clock } from "../kernel/clock.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { createNoteSigner } from "./checkpoint-note.ts";
import { createSignedMemory, InconsistentLog, sealLog } from "./seal-log.ts";

/** Seals the evidence leaves of all organizations while the gateway is open. */
export interface Sequencer {
  readonly verificationKey: string;
  /** How long a leaf may wait, in milliseconds. */
  readonly alarmAfter: number;
  start(): void;
  stop(): Promise<void>;
  /** Seals everything that waits. @throws what the store or the signer throws */
  seal(): Promise<void>;
  /** Every leaf written before this time should be sealed: the sequencer found no other. 0 before its first round. */
  sealedUpTo(): number;
  /** Milliseconds since every leaf was sealed. */
  unsealedMs(): number;
  /** Whether leaves have waited longer than the alarm allows. */
  isLate(): boolean;
}

interface SequencerParts {
  readonly checkpoints: CheckpointRepository;
  readonly signer: EvidenceSigner;
  /** Milliseconds. */
  readonly alarmAfter: number;
  readonly clock: Clock;
  readonly notify: (event: GatewayEvent) => void;
}

const intervalMs = 500;
const signingMs = 5_000;
const logsPerPage = 500;

export function createSequencer(parts: SequencerParts): Sequencer {
  const { checkpoints, alarmAfter, clock, notify } = parts;
  const signer = createNoteSigner(bounded(parts.signer, clock));
  const createdAt = clock.now();
  /** Every leaf written before this time is sealed. 0 before the first round. */
  let sealedUpTo = 0;
  let isReported = false;
  let isStopped = false;
  let cancel = (): void => {};
  let round: Promise<void> = Promise.resolve();
  let last: Promise<void> = Promise.resolve();

  const sealing = {
    checkpoints,
    memory: createSignedMemory(),
    signer,
    now: () => clock.now(),
    isStopped: () => isStopped,
    signed({ organizationId, number, size, note }: SignedCheckpoint): void {
      const at = clock.now();
      const of = organizationId === "" ? null : organizationId;
      notify({ type: "checkpoint.signed", at, organizationId: of, number, size, note });
    },
  };

  /** A log that can't be sealed doesn't stop the others, a failing signer does. The first error is thrown at the end. */
  async function sealAll(): Promise<void> {
    const startedAt = clock.now();
    let failure: unknown = null;
    let mayGoOn = true;
    let waiting = startedAt;
    for (let after: string | null = null; ; ) {
      const { logs, next }: UnsealedLogs = await checkpoints.unsealed({
        after,
        limit: logsPerPage,
      });
      for (const { organizationId, since } of logs) {
        try {
          if (mayGoOn && !isStopped) await sealLog(sealing, organizationId);
          else waiting = Math.min(waiting, since);
        } catch (thrown) {
          failure ??= thrown;
          mayGoOn &&= isOfOneLog(thrown);
          waiting = Math.min(waiting, since);
        }
      }
      if (next === null) break;
      after = next;
      await yieldToEventLoop();
    }
    sealedUpTo = waiting;
    if (failure !== null) throw failure;
  }

  /** One after the other: a call that read the last checkpoint before another call signed would take it for lost. */
  function seal(): Promise<void> {
    const sealed = last.then(sealAll);
    last = sealed.catch(() => {});
    return sealed;
  }

  const unsealedMs = (): number => Math.max(0, clock.now() - (sealedUpTo || createdAt));
  const isLate = (): boolean => unsealedMs() > alarmAfter;

  function report(): void {
    if (isLate() === isReported) return;
    isReported = !isReported;
    const type = isReported ? "gateway.degraded" : "gateway.restored";
    notify({ type, at: clock.now(), what: "sealing" });
  }

  /** The pause is at least as long as the round, so that sealing never takes more than half of the store's time. */
  async function runRound(): Promise<void> {
    const startedAt = clock.monotonic();
    // The next round tries again, and the alarm tells if that doesn't help.
    await seal().catch(() => {});
    report();
    schedule(Math.max(intervalMs, clock.monotonic() - startedAt));
  }

  function schedule(milliseconds: number): void {
    if (isStopped) return;
    const begin = (): void => {
      round = runRound();
    };
    cancel = clock.after(milliseconds, begin, { background: true });
  }

  return {
    verificationKey: signer.verificationKey,
    alarmAfter,
    start: () => schedule(intervalMs),
    async stop() {
      isStopped = true;
      cancel();
      await round;
    },
    seal,
    sealedUpTo: () => sealedUpTo,
    unsealedMs,
    isLate,
  };
}

type SignedCheckpoint = Parameters<Parameters<typeof sealLog>[0]["signed"]>[0];

function isOfOneLog(failure: unknown): boolean {
  return failure instanceof InconsistentLog;
}

/** A signer that doesn't answer counts as failing. */
function bounded(signer: EvidenceSigner, clock: Clock): EvidenceSigner {
  const { contract, name, publicKey } = signer;
  return {
    contract,
    name,
    publicKey,
    sign: (bytes) => orTimeout(clock, signingMs, () => signer.sign(bytes)),
  };
}
