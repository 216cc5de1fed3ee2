import { GatewayError } from "../errors/gateway-error.ts";
import type { LastUsed } from "../identity/last-used.ts";
import type { Line } from "./line.ts";
import type { Maintenance } from "./maintenance.ts";
import { notePolicy } from "./note-policy.ts";

/** A gateway from its first use to its end. */
export interface Lifecycle {
  /**
   * Opens the store, brings it up to date and takes the lease, once; where that failed, the next caller tries again.
   * @throws GatewayError `overloaded` when the gateway closes unopened
   */
  ready(): Promise<void>;
  /**
   * Runs a request in an open gateway; closing waits for it. `open` is `ready` for requests admitted before.
   * @throws GatewayError `overloaded` when the gateway closes
   */
  admit<Result>(request: (open: () => Promise<void>) => Promise<Result>): Promise<Result>;
  /** Admits nothing more, lets what was admitted end within `deadlines.drain`, and closes what the gateway opened. */
  close(): Promise<void>;
}

/** How long requests whose Steps were ended have left to be answered. Milliseconds. */
const lastAnswers = 1_000;

interface Parts {
  readonly maintenance: Maintenance;
  readonly lastUsed: LastUsed;
}

export function createLifecycle(line: Line, parts: Parts): Lifecycle {
  const opening = createOpening(async () => {
    await line.store.migrate();
    await notePolicy(line);
    await line.budgets.reload();
    await parts.maintenance.start();
  });
  const requests = new Set<Promise<unknown>>();
  let closing: Promise<void> | null = null;

  async function shutDown(): Promise<void> {
    await drain(line, async () => void (await Promise.allSettled(requests)));
    await opening.ended();
    await parts.maintenance.stop();
    await parts.lastUsed.close();
    await Promise.all([...line.providers.values()].map((provider) => provider.close()));
    await line.store.close();
  }

  return {
    async ready() {
      if (closing && !opening.hasBegun()) throw shuttingDown();
      await opening.open();
    },
    async admit(request) {
      if (closing) throw shuttingDown();
      const running = request(opening.open);
      requests.add(running);
      return running.finally(() => requests.delete(running));
    },
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
}

/** Opens once; where that failed, the next caller tries again. */
function createOpening(openAll: () => Promise<void>) {
  let opening: Promise<void> | null = null;
  return {
    open(): Promise<void> {
      if (opening) return opening;
      const attempt = openAll();
      opening = attempt;
      attempt.catch(() => {
        if (opening === attempt) opening = null;
      });
      return attempt;
    },
    hasBegun: () => opening !== null,
    ended: async () => opening?.catch(() => {}),
  };
}

/** Waits until all is answered and settled; after `deadlines.drain` ends the Steps that are still open. */
async function drain(
  { clock, deadlines, openSteps }: Line,
  answered: () => Promise<void>,
): Promise<void> {
  const over = Promise.withResolvers<void>();
  const cancel = clock.after(deadlines.drain, () => {
    openSteps.stopAll();
    over.resolve();
  });
  await Promise.race([answered(), over.promise]);
  await openSteps.idle();
  cancel();
  const late = Promise.withResolvers<void>();
  const cancelLate = clock.after(lastAnswers, late.resolve);
  await Promise.race([answered(), late.promise]);
  cancelLate();
}

function shuttingDown(): GatewayError {
  return new GatewayError("overloaded", "The gateway is shutting down.", {
    headers: { "retry-after": "1" },
  });
}
