import {
  type CreateKeyOptions,
  createGateway,
  type Gateway,
  type GatewayOptions,
  type KeyRecord,
  type ProcessLoad,
} from "@tollgate/core";
import type { Billing, ListedModel } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { type Chat, chatWith, testModel } from "./chat.ts";
import { countingIds } from "./counting-ids.ts";
import { type ManualClock, manualClock } from "./manual-clock.ts";
import { type ScriptedProvider, scriptedProvider } from "./scripted-provider.ts";

/** Options of a test gateway: any option of a gateway, and some for tests. */
export interface TestGatewayOptions extends Partial<Omit<GatewayOptions, "clock">> {
  /** Additional gateways that the scripted provider answers, besides `test` and those in the policy. */
  readonly gateways?: readonly string[];
  /**
   * The models of every scripted gateway, with prices in US dollars per million tokens. Default: `tollgate/scripted`, at
   * 1 for input and 2 for output (1,000 and 2,000 nanodollars per token).
   */
  readonly models?: Readonly<Record<string, ListedModel>>;
  /** Whether scripted gateways accept unlisted models. Default true. */
  readonly open?: boolean;
  /** How scripted gateways are billed. Default: by the price table only. */
  readonly billing?: Billing;
  /** The test key. Default: label `test key` of user `user-1` in organization `organization-1`. */
  readonly key?: Partial<CreateKeyOptions>;
  /** Pass a clock to share it between gateways. */
  readonly clock?: ManualClock;
}

/** An API key and its secret. */
export interface TestKey extends KeyRecord {
  readonly secret: string;
}

/** A gateway for a test, and everything around it. */
export interface TestGateway {
  readonly gateway: Gateway;
  readonly provider: ScriptedProvider;
  readonly key: TestKey;
  readonly clock: ManualClock;
  readonly store: Store;
  /** Creates requests signed with the test key. */
  readonly chat: Chat;
  /** Creates another key, and requests signed with it. */
  readonly createKey: (
    creation?: Partial<CreateKeyOptions>,
  ) => Promise<{ readonly key: TestKey; readonly chat: Chat }>;
}

const defaultKey = { organizationId: "organization-1", userId: "user-1", label: "test key" };
const testSecrets = {
  current: "test",
  keys: { test: Buffer.alloc(32, "test").toString("base64") },
};
const defaultModels = { [testModel]: { input: "1", output: "2" } };

/** Whatever else the machine does, a test's requests are not refused for it. */
const calm: ProcessLoad = { loopDelay: () => 0, heapShare: () => 0 };

/**
 * Creates a gateway with a key for tests: in memory, with a manual clock, predictable ids and a scripted provider. It
 * works with any test runner.
 */
export async function createTestGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const {
    gateways = [],
    models = defaultModels,
    open = true,
    billing,
    key: firstKey = {},
    clock = manualClock(),
    ids = countingIds(),
    store = memoryStore(),
    providers = {},
    secrets = testSecrets,
    ...rest
  } = options;
  const provider = scriptedProvider({
    clock,
    models,
    open,
    ...(billing === undefined ? {} : { billing }),
  });
  const { policy } = options;
  const fallbacks = (policy?.fallbacks ?? []).flatMap((model) => model.split("/", 1));
  const names = ["test", ...(policy?.gateways ?? []), ...fallbacks, ...gateways];
  const scripted = Object.fromEntries(names.map((name) => [name, provider.at(name)]));
  const gateway = createGateway({
    load: calm,
    ...rest,
    store,
    clock,
    ids,
    secrets,
    providers: { ...scripted, ...providers },
  });

  const createKey: TestGateway["createKey"] = async (creation = {}) => {
    const { key, secret } = await gateway.keys.create({ ...defaultKey, ...firstKey, ...creation });
    return { key: { ...key, secret }, chat: chatWith(secret) };
  };
  await gateway.ready();
  const first = await createKey();
  return { gateway, provider, clock, store, createKey, ...first };
}
