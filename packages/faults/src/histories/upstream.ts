import { ProviderError } from "@tollgate/core/provider";
import type { ScriptedProvider } from "@tollgate/testing";
import type { UpstreamBehavior } from "./command.ts";

const busy = new ProviderError("The provider is busy.", {
  reason: "status_503",
  delivery: "answered",
  status: 503,
});
const cut = new ProviderError("The provider broke off.", {
  reason: "connection_closed",
  delivery: "unknown",
});

/** The first attempt and its two retries. */
const attempts = 3;

/** Sets the behavior of the next calls. */
export function scriptUpstream(provider: ScriptedProvider, behavior: UpstreamBehavior): void {
  switch (behavior) {
    case "refuse":
      provider.fail(busy);
      return;
    case "exhaust":
      provider.fail(busy, { times: attempts });
      return;
    case "break":
      provider.fail(cut, { afterEvents: 2, answer: { text: ["Half", " of it"] } });
      return;
    case "callTool":
      provider.reply({ toolCalls: [{ name: "look", arguments: '{"at":1}' }] });
      return;
    case "truncate":
      provider.reply({ text: "Too lo", finishReason: "length" });
      return;
  }
}
