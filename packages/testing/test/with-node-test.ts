import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import test from "node:test";

registerHooks({
  resolve(specifier, context, next) {
    assert.notEqual(specifier, "vitest", `${context.parentURL} imports vitest`);
    return next(specifier, context);
  },
});

test("a test gateway answers under node:test, without another test runner", async () => {
  const { createTestGateway } = await import("@tollgate/testing");
  const { gateway, provider, chat } = await createTestGateway();
  provider.reply("Hello");
  const answer = await gateway.fetch(chat());
  assert.equal(answer.status, 200);
  assert.match(await answer.text(), /"content":"Hello"/);
  assert.equal(provider.calls.length, 1);
});
