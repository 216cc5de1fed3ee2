/** The gateway's only name for the tier of requests that don't ask for one. */
export const standardTier = "default";

/** Names of the standard tier in requests and at providers. */
const standardNames: ReadonlySet<string> = new Set(["auto", "default", "standard", "on_demand"]);

const standardOnly: readonly string[] = [standardTier];

const tierName = /^[a-z0-9][a-z0-9_.-]{0,31}$/;

/** The name of a tier in prices, holds, policies and records: lower case, with one name for the standard tier. */
export function tierOf(name: string | undefined): string {
  const lower = name?.toLowerCase() ?? standardTier;
  return standardNames.has(lower) ? standardTier : lower;
}

/** Whether this can be the name of a tier. Names that providers report are checked before they are recorded. */
export function isTierName(name: unknown): name is string {
  return typeof name === "string" && tierName.test(name.toLowerCase());
}

/** Whether this can be the tier that served a call. It can't be `auto`, which doesn't say which one did. */
export function isServedTier(name: unknown): name is string {
  return isTierName(name) && name.toLowerCase() !== "auto";
}

/** Whether a tier can have its own prices. The standard tier can't: it uses the model's own prices. */
export function isOwnTier(name: string): boolean {
  return tierName.test(name) && tierOf(name) !== standardTier;
}

/**
 * The tiers that may serve a call, the requested one first. The standard tier may always serve it instead. `auto` lists the
 * tiers, in addition to the standard one, that may serve a call that requests none.
 */
export function tiersFor(asked: string | undefined, auto: readonly string[]): readonly string[] {
  const tier = tierOf(asked);
  if (tier !== standardTier) return [tier, standardTier];
  const isOpen = asked === undefined || asked === "auto";
  return isOpen && auto.length > 0
    ? [...new Set([standardTier, ...auto.map(tierOf)])]
    : standardOnly;
}

/** The tier to send: the policy's, otherwise the requested one. Omits the standard tier if no other is used by default. */
export function tierToSend(
  asked: string | undefined,
  { set, auto }: { readonly set: string | undefined; readonly auto: readonly string[] },
): string | undefined {
  if (set === undefined) return asked;
  const tier = tierOf(set);
  return tier === standardTier && auto.length === 0 ? undefined : tier;
}
