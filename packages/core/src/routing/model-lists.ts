import type { PriceBook } from "../contracts/price-book.ts";
import type { Provider } from "../contracts/provider.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Router } from "./route.ts";

/** The ids that gateways list in `/v1/models`. Listing never fails, and never prevents calls of other models. */
export interface ModelLists {
  of(gateway: string, provider: Provider): Promise<readonly string[]>;
}

const maxModels = 5_000;
const maxWaitMs = 2_000;
const freshMs = 300_000;
/** How long to leave an upstream alone after a failure. */
const pauseMs = 30_000;

interface Asked {
  ids: readonly string[];
  until: number;
  asking: Promise<readonly string[]> | null;
}

/** Lists the configured models, otherwise those of the price book, otherwise the upstream's own. */
export function createModelLists({
  prices,
  router,
  clock,
}: {
  readonly prices: PriceBook;
  readonly router: Router;
  readonly clock: Clock;
}): ModelLists {
  const asked = new Map<string, Asked>();

  /** Leaves out fine-tuned models, which belong to the account that trained them, and names that reach no model. */
  const idsOf = (gateway: string, names: readonly string[]): readonly string[] => {
    const ids = names
      .slice(0, maxModels)
      .flatMap((name) => (name.startsWith("ft:") ? [] : (router.idOf(gateway, name) ?? [])));
    return [...new Set(ids)];
  };

  const known = (gateway: string, { vendor }: Provider): readonly string[] => {
    try {
      return idsOf(gateway, prices.modelNames?.({ gateway, vendor }, clock.now()) ?? []);
    } catch {
      return [];
    }
  };

  const ask = async (gateway: string, provider: Provider, last: Asked) => {
    const controller = new AbortController();
    try {
      const names = await orTimeout(
        clock,
        maxWaitMs,
        async () => provider.listModels?.(controller.signal) ?? [],
      );
      last.ids = idsOf(gateway, names);
      last.until = clock.monotonic() + freshMs;
    } catch (thrown) {
      controller.abort(thrown);
      last.until = clock.monotonic() + pauseMs;
    } finally {
      last.asking = null;
    }
    return last.ids;
  };

  const upstreams = async (gateway: string, provider: Provider): Promise<readonly string[]> => {
    if (provider.listModels === undefined || provider.connection !== "platform") return [];
    const last = asked.get(gateway) ?? { ids: [], until: Number.NEGATIVE_INFINITY, asking: null };
    asked.set(gateway, last);
    if (last.asking === null && clock.monotonic() < last.until) return last.ids;
    last.asking ??= ask(gateway, provider, last);
    return last.asking;
  };

  return {
    async of(gateway, provider) {
      const configured = Object.keys(provider.models);
      if (configured.length > 0) return configured.map((model) => `${gateway}/${model}`);
      const catalog = known(gateway, provider);
      return catalog.length > 0 ? catalog : upstreams(gateway, provider);
    },
  };
}
