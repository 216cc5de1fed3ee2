import { bodySurfaces } from "./body-surfaces.ts";
import { gatewaySurfaces } from "./gateway-surfaces.ts";
import type { Surface } from "./surface.ts";
import { wireSurfaces } from "./wire-surfaces.ts";

/** Every part of the product that reads bytes of a client, an upstream or a host's configuration. */
export const surfaces: readonly Surface[] = [...bodySurfaces, ...wireSurfaces, ...gatewaySurfaces];
