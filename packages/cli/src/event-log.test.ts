import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";
import { eventLog, type LogLevel } from "./event-log.ts";

const canary = "canary-5f3a";

/** Runs requests that end in every way, with a canary in every text that a client or an operator writes. */
async function linesOf(level: LogLevel): Promise<readonly string[]> {
  const lines: string[] = [];
  const policy = definePolicy({
    version: "1",
    rules: [
      permit("all", {}),
      forbid("models", { model: `test/vendor/${canary}` }, { reason: `not ${canary}` }),
    ],
  });
  const test = await createTestGateway({
    policy,
    retries: { max: 0 },
    key: { label: canary },
    budgets: [{ id: "day", scope: {}, limit: { requests: 6 }, period: "total", warnAt: [0.5] }],
    observers: [eventLog(level, (line) => lines.push(line))],
  });
  const { gateway, provider, chat, key } = test;
  const ask = async (fields: object = {}, headers: Readonly<Record<string, string>> = {}) => {
    const said = { messages: [{ role: "user" as const, content: canary }], user: canary };
    const answer = await gateway.fetch(
      chat({ ...said, ...fields }, { "x-title": canary, ...headers }),
    );
    await answer.text();
  };
  await ask();
  await ask({ model: `test/vendor/${canary}` });
  await ask({ [canary]: 1 });
  await ask({}, { authorization: `Bearer ${canary}` });
  const broken = {
    reason: "down",
    delivery: "answered",
    status: 500,
    upstreamError: canary,
  } as const;
  provider.fail(new ProviderError(`Down: ${canary}`, broken));
  await ask();
  for (let request = 0; request < 5; request++) await ask({ metadata: { canary } });
  await gateway.keys.revoke({ organizationId: key.organizationId, id: key.id, actor: canary });
  await ask();
  return lines;
}

it("logs failures and warnings with ids and codes alone", async () => {
  const lines = await linesOf("warnings");
  expect(lines.join("")).not.toContain(canary);
  const events = lines.map((line): { event: string; code?: string } => JSON.parse(line));
  expect(events.map(({ event, code = "" }) => `${event} ${code}`.trim())).toEqual([
    "answer.failed policy_denied",
    "answer.failed unknown_parameter",
    "answer.failed invalid_api_key",
    "answer.failed upstream_error",
    "budget.warned",
    "budget.exhausted",
    "answer.failed budget_exceeded",
    "answer.failed invalid_api_key",
  ]);
});

it("logs every request if asked to, without what the client wrote", async () => {
  const lines = await linesOf("requests");
  expect(lines.join("")).not.toContain(canary);
  const answered = lines.filter((line) => line.includes("request.answered"));
  expect(answered).toHaveLength(11);
  expect(JSON.parse(answered[0] ?? "")).toMatchObject({
    ...{ level: "info", event: "request.answered", endpoint: "chatCompletions" },
    ...{ status: 200, code: null, organizationId: "organization-1" },
  });
});
