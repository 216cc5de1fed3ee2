import { GatewayError } from "../errors/gateway-error.ts";

/**
 * That a filter selects by nothing but these members: one that is not known would select everything, unseen.
 * @throws GatewayError `invalid_argument`
 */
export function requireMembers(filter: object, members: readonly string[]): void {
  const unknown = Object.keys(filter).find((name) => !members.includes(name));
  if (unknown !== undefined)
    throw new GatewayError("invalid_argument", `There is no filter ${unknown}.`, {
      param: unknown,
    });
}
