import { describe } from "vitest";
import { describeAdministration } from "./administration-contract.ts";
import { describeAnswers } from "./binding-contract/answers.ts";
import type { Binding } from "./binding-contract/binding.ts";
import { describeBodies } from "./binding-contract/bodies.ts";
import { describeFailures } from "./binding-contract/failures.ts";
import { describeHangUps } from "./binding-contract/hang-ups.ts";
import { describeIdentity, describeMounting } from "./binding-contract/mounting.ts";

import { describeSecurity } from "./binding-contract/security.ts";
import { describeSlowClients } from "./binding-contract/slow-clients.ts";

export type { Binding, Mounting, ServedBinding } from "./binding-contract/binding.ts";

/**
 * Declares the conformance suite for bindings (peers: vitest, `openai`, `fast-check`). It mounts a gateway in a host without
 * other middleware, and calls it over real sockets, with and without the OpenAI SDK. You can't skip a test: a binding must
 * pass all of them.
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
    describeAdministration(name, { serve: binding.serve });
  });
}
