import type { ProviderFixtures } from "@tollgate/conformance/provider-contract";
import type { Connect } from "../../src/index.ts";

/** A vendor's own protocol: its AI SDK provider, and the answers of its upstream. */
export interface Vendor {
  readonly name: string;
  /** Creates the function form for an upstream at this URL. */
  readonly connect: (url: string) => Connect;
  readonly fixtures: ProviderFixtures;
}

/** The content of every vendor's answers, each in its own format. */
export const said = ["Grüße, ", "世界 ", "🌍!"] as const;
export const tool = { name: "get_weather", input: { city: "Zürich" } } as const;
