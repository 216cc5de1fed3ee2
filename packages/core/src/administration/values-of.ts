import { changeKinds } from "../domain/change-kind.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import type { Endpoint, StepOutcome } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";

const endpoints = { chat_completions: true, responses: true } satisfies Record<Endpoint, true>;
const ownerships = { platform: true, customer: true } satisfies Record<ConnectionOwnership, true>;
const outcomes = {
  completed: true,
  failed: true,
  cancelled: true,
  interrupted: true,
  open: true,
} satisfies Record<StepOutcome | "open", true>;

/** What selectors choose from that take no ids or names; of any other value the answer would be empty, and look true. */
const choices: ReadonlyMap<string, readonly string[]> = new Map([
  ["connection", Object.keys(ownerships)],
  ["endpoint", Object.keys(endpoints)],
  ["kind", changeKinds],
  ["outcome", Object.keys(outcomes)],
]);

/** The texts of a selector. @throws GatewayError `invalid_argument` */
export function valuesOf(name: string, value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts = values.filter((one) => typeof one === "string");
  if (texts.length !== values.length)
    throw wrong(name, `${name} must be a text or a list of texts.`);
  const known = choices.get(name);
  if (known === undefined || texts.every((text) => known.includes(text))) return texts;
  throw wrong(name, `${name} must be one or several of ${known.join(", ")}.`);
}

function wrong(param: string, message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param });
}
