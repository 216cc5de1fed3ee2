import { describe } from "vitest";
import { describeAnswers } from "./binding-contract/answers.ts";
import type { Binding } from "./binding-contract/binding.ts";
import { describeBodies } from "./binding-contract/bodies.ts";
import { describeFailures } from "./binding-contract/failures.ts";
import { describeHangUps } from "./binding-contract/hang-ups.ts";
import { describeIdentity } from "./binding-contract/identity.ts";
import { describeMounting } from "./binding-contract/mounting.ts";
import { describeSecurity } from "./binding-contract/security.ts";
import { describeSlowClients } from "./binding-contract/slow-clients.ts";

export type { Binding, Mounting, ServedBinding } from "./binding-contract/binding.ts";

/**
 * Registers, with vitest, the tests every binding passes: a gateway mounted by it in a host without further
 * middleware, and clients over real sockets, the OpenAI SDK among them (peers: `openai`, `fast-check`). All of them run: a binding that
 * cannot keep one is not a binding.
 */
export function describeBindingContract(name: string, binding: Binding): void {
  describe(`the binding contract: ${name}`, () => {
    describeMounting(binding);
    describeBodies(binding);
    describeAnswers(binding);
    describeFailures(binding);
    describeHangUps(binding);
    describeSlowClients(binding);
    describeSecurity(binding);
    describeIdentity(binding);
  });
}
