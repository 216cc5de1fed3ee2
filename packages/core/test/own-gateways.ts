import type { Provider } from "@tollgate/core/provider";
import {
  createTestGateway,
  type ScriptedProvider,
  scriptedProvider,
  type TestGateway,
  type TestGatewayOptions,
} from "@tollgate/testing";

/** A test gateway with customer-owned gateways in addition to `test`, and the credentials that each received. */
export interface OwnGateways extends TestGateway {
  readonly upstream: ScriptedProvider;
  /** `gateway credential` of each call of a customer-owned gateway. */
  credentials(): readonly string[];
}

/** A gateway whose `own` and `spare` are customer-owned, with a price for their one model. */
export async function openOwnGateways(options: TestGatewayOptions = {}): Promise<OwnGateways> {
  const upstream = scriptedProvider({ models: { "a/b": { input: "1", output: "2" } } });
  const customer = (name: string): Provider => ({
    ...upstream.at(name),
    connection: "customer",
  });
  const providers = { own: customer("own"), spare: customer("spare"), ...options.providers };
  const test = await createTestGateway({ retries: { max: 0 }, ...options, providers });
  return {
    ...test,
    upstream,
    credentials: () => upstream.calls.map(({ gateway, credential }) => `${gateway} ${credential}`),
  };
}
