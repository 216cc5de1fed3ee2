import { GatewayError } from "../errors/gateway-error.ts";
import type { LastUsed } from "../identity/last-used.ts";
import type { Line } from "./line.ts";
import type { Maintenance } from "./maintenance.ts";

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

export function createLifecycle(
  line: Line,
  { maintenance, lastUsed }: { readonly maintenance: Maintenance; readonly lastUsed: LastUsed },
): Lifecycle {
  const { store, clock, openSteps } = line;
  const requests = new Set<Promise<unknown>>();
  let opening: Promise<void> | null = null;
  let closing: Promise<void> | null = null;

  async function openAll(): Promise<void> {
    await store.migrate();
    await line.budgets.reload();
    await maintenance.start();
  }

  function open(): Promise<void> {
    if (opening) return opening;
    const attempt = openAll();
    opening = attempt;
    attempt.catch(() => {
      if (opening === attempt) opening = null;
    });
    return attempt;
  }

  const answered = async (): Promise<void> => void (await Promise.allSettled(requests));

  async function shutDown(): Promise<void> {
    const drained = Promise.withResolvers<void>();
    const cancel = clock.after(line.deadlines.drain, () => {
      openSteps.stopAll();
      drained.resolve();
    });
    await Promise.race([answered(), drained.promise]);
    await openSteps.idle();
    cancel();
    await within(lastAnswers, answered());
    await opening?.catch(() => {});
    await maintenance.stop();
    await lastUsed.close();
    await Promise.all([...line.providers.values()].map((provider) => provider.close()));
    await store.close();
  }

  async function within(milliseconds: number, work: Promise<void>): Promise<void> {
    const over = Promise.withResolvers<void>();
    const cancel = clock.after(milliseconds, over.resolve);
    await Promise.race([work, over.promise]);
    cancel();
  }

  return {
    ready: async () => {
      if (closing && !opening) throw shuttingDown();
      await open();
    },
    async admit(request) {
      if (closing) throw shuttingDown();
      const running = request(open);
      requests.add(running);
      return running.finally(() => requests.delete(running));
    },
    close: () => {
      closing ??= shutDown();
      return closing;
    },
  };
}

function shuttingDown(): GatewayError {
  return new GatewayError("overloaded", "The gateway is shutting down.", {
    headers: { "retry-after": "1" },
  });
}
