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

interface UpstreamList {
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
  const lists = new Map<string, UpstreamList>();

  /** Leaves out fine-tuned models, which belong to the account that trained them, and names that reach no model. */
  const idsOf = (gateway: string, names: readonly string[]): readonly string[] => {
    const ids = names
      .slice(0, maxModels)
      .flatMap((name) => (name.startsWith("ft:") ? [] : (router.idOf(gateway, name) ?? [])));
    return [...new Set(ids)];
  };

  const catalogModels = (gateway: string, { vendor }: Provider): readonly string[] => {
    try {
      return idsOf(gateway, prices.modelNames?.({ gateway, vendor }, clock.now()) ?? []);
    } catch {
      return [];
    }
  };

  const ask = async (gateway: string, provider: Provider, list: UpstreamList) => {
    const controller = new AbortController();
    try {
      const names = await orTimeout(
        clock,
        maxWaitMs,
        async () => provider.listModels?.(controller.signal) ?? [],
      );
      list.ids = idsOf(gateway, names);
      list.until = clock.monotonic() + freshMs;
    } catch (thrown) {
      controller.abort(thrown);
      list.until = clock.monotonic() + pauseMs;
    } finally {
      list.asking = null;
    }
    return list.ids;
  };

  const upstreamModels = async (
    gateway: string,
    provider: Provider,
  ): Promise<readonly string[]> => {
    if (provider.listModels === undefined || provider.connection !== "platform") return [];
    const list = lists.get(gateway) ?? { ids: [], until: Number.NEGATIVE_INFINITY, asking: null };
    lists.set(gateway, list);
    if (list.asking === null && clock.monotonic() < list.until) return list.ids;
    list.asking ??= ask(gateway, provider, list);
    return list.asking;
  };

  return {
    async of(gateway, provider) {
      const configured = Object.keys(provider.models);
      if (configured.length > 0) return configured.map((model) => `${gateway}/${model}`);
      const catalog = catalogModels(gateway, provider);
      return catalog.length > 0 ? catalog : upstreamModels(gateway, provider);
    },
  };
}
