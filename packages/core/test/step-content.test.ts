import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

const tenant = { organizationId: "organization-1" };
const hello = { role: "user", content: "Hello" };

async function newestOf({ gateway }: TestGateway) {
  const [step] = (await gateway.steps.list(tenant)).data;
  return gateway.steps.content({ ...tenant, id: step?.id ?? "" });
}

describe.each(stores)("the content of a Step on %s", (_, open) => {
  const start = async (options: TestGatewayOptions = {}) => {
    const test = await createTestGateway({ store: open(), retries: { max: 0 }, ...options });
    onTestFinished(() => test.gateway.close());
    return test;
  };
  const respond = (test: TestGateway, fields: object) => {
    const body = JSON.stringify({ model: "test/tollgate/scripted", input: "Hello", ...fields });
    const { headers } = test.chat();
    return test.gateway.fetch(
      new Request("http://test/v1/responses", { method: "POST", headers, body }),
    );
  };

  it("has the instructions of a Responses request", async () => {
    const test = await start();
    test.provider.reply("Hi");
    await (await respond(test, { instructions: "Be brief." })).text();
    expect(await newestOf(test)).toMatchObject({
      outcome: "completed",
      instructions: "Be brief.",
      input: [hello],
      answer: [{ role: "assistant", content: "Hi" }],
      reasoning: null,
      missing: { reasoning: "none" },
    });
  });

  it("has its new messages, and the leading messages of a conversation as instructions", async () => {
    const test = await start();
    const system = { role: "system", content: "Be brief." };
    const ask = async (messages: readonly object[]) => {
      const { choices } = await completionOf(test.gateway.fetch(test.chat({ messages })));
      return choices[0]?.message ?? {};
    };
    const answer = await ask([system, hello]);
    const more = { role: "user", content: "More" };
    await ask([system, hello, answer, more]);
    expect(await newestOf(test)).toMatchObject({ instructions: "Be brief.", input: [more] });
  });

  it("has the partial answer of a failed Step, and the reasoning that the client was shown", async () => {
    const test = await start();
    const cut = new ProviderError("Cut.", { reason: "cut", delivery: "unknown" });
    const answer = { reasoning: ["Think", "ing"], text: ["Par", "tial"] };
    test.provider.fail(cut, { afterEvents: 4, answer });
    await (await test.gateway.fetch(test.chat({ stream: true }))).text();
    expect(await newestOf(test)).toMatchObject({
      outcome: "failed",
      answer: [{ role: "assistant", content: "Par" }],
      reasoning: "Thinking",
      missing: { instructions: "none" },
    });
  });

  it("says that the policy keeps only digests, or that retention erased the content", async () => {
    const policy = definePolicy({ rules: [permit("digest", {}, { transcript: "digest" })] });
    const digest = await start({ policy });
    await (await respond(digest, { instructions: "Be brief." })).text();
    expect(await newestOf(digest)).toMatchObject({
      instructions: null,
      input: null,
      answer: null,
      missing: { instructions: "digest", input: "digest", answer: "digest", reasoning: "none" },
    });
    const test = await start({ maintenance: false, retention: { transcripts: "1d" } });
    await (await test.gateway.fetch(test.chat())).text();
    test.clock.setWall(test.clock.now() + 2 * 86_400_000);
    await test.gateway.sweep();
    expect(await newestOf(test)).toMatchObject({
      answer: null,
      missing: { instructions: "erased", input: "erased", answer: "erased", reasoning: "none" },
    });
  });

  it("is shown only to its own organization", async () => {
    const test = await start();
    await (await test.gateway.fetch(test.chat())).text();
    const { id } = await newestOf(test);
    const other = test.gateway.steps.content({ organizationId: "other", id });
    await expect(other).rejects.toMatchObject({ code: "step_not_found" });
  });
});

it("has no answer yet while the Step is open", async () => {
  const test = await createTestGateway({ retries: { max: 0 } });
  const hold = test.provider.hold();
  const answering = test.gateway.fetch(test.chat());
  await hold.reached();
  expect(await newestOf(test)).toMatchObject({
    outcome: "open",
    input: [hello],
    missing: { answer: "open", reasoning: "open" },
  });
  hold.release();
  await (await answering).text();
});
