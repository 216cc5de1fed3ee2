import type { ProviderFixtures } from "@tollgate/conformance/provider-contract";
import type { Connect } from "../../src/index.ts";

/** A vendor's own protocol: how the AI SDK's provider for it is made, and what its upstream says. */
export interface Vendor {
  readonly name: string;
  /** Makes the function form for an upstream at this URL. */
  readonly connect: (url: string) => Connect;
  readonly fixtures: ProviderFixtures;
}

/** What every vendor says in its own words. */
export const said = ["Grüße, ", "世界 ", "🌍!"] as const;
export const tool = { name: "get_weather", input: { city: "Zürich" } } as const;
