import { describe, expect, it } from "vitest";
import { describeAnswers } from "./provider-contract/answers.ts";
import { credential } from "./provider-contract/drive.ts";
import { describeEndings } from "./provider-contract/endings.ts";
import { describeFailures } from "./provider-contract/failures.ts";
import type { CreateProvider, ProviderFixtures } from "./provider-contract/fixtures.ts";
import { describeSinks } from "./provider-contract/sinks.ts";

export {
  type AnswerFixture,
  type CreateProvider,
  canary,
  type NativeAnswer,
  type ProviderFixtures,
} from "./provider-contract/fixtures.ts";

/**
 * Declares the conformance suite for providers (peer: vitest), against a scripted upstream in the provider's native
 * format. You can't skip a test: a provider must pass all of them.
 */
export function describeProviderContract(
  name: string,
  { create, fixtures }: { readonly create: CreateProvider; readonly fixtures: ProviderFixtures },
): void {
  describe(`the provider contract: ${name}`, () => {
    it("describes itself", async () => {
      const provider = create({ url: "http://127.0.0.1:1", connection: "platform", credential });
      expect(provider).toMatchObject({ contract: 1, connection: "platform", problems: [] });
      await provider.close();
    });
    describeAnswers(create, fixtures);
    describeFailures(create, fixtures);
    describeEndings(create, fixtures);
    describeSinks(create, fixtures);
  });
}
