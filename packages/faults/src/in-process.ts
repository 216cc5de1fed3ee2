/**
 * A script that calls a gateway in its own process. It prints one line and never calls `process.exit`, so the process
 * ends when nothing keeps it alive.
 *
 * `node in-process.ts retry`: waits for a call whose provider answers 503 first, and doesn't close the gateway.
 * `node in-process.ts deadline`: starts a call whose provider never answers, and doesn't wait.
 */
import { createGateway, systemClock } from "@tollgate/core";
import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";

const mode = process.argv[2];
const provider = scriptedProvider({ clock: systemClock, models: { "vendor/model": {} } });
if (mode === "deadline") provider.hold();
else
  provider.fail(
    new ProviderError("Busy.", { reason: "status", delivery: "answered", status: 503 }),
  );
const gateway = createGateway({
  store: memoryStore(),
  providers: { up: provider.at("up") },
  deadlines: { total: 400 },
  observers: [
    (event) => {
      if (event.type === "step.settled") process.stdout.write(`${event.outcome}\n`);
    },
  ],
});
const caller = { organizationId: "acme", userId: "jane", label: "a script" };
const calling = gateway.as(caller).fetch("http://gateway.test/v1/chat/completions", {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    model: "up/vendor/model",
    messages: [{ role: "user", content: "Hello" }],
  }),
});
if (mode === "retry") {
  const { status } = await calling;
  process.stdout.write(`${status} after ${provider.calls.length} calls\n`);
}
