import { countingIds, createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { completionOf } from "./wire.ts";
import { written } from "./written.ts";

/** Everything that could tell a caller two answers apart. */
async function seen(answer: Response): Promise<unknown> {
  const headers = Object.fromEntries(answer.headers);
  delete headers["x-request-id"];
  return { status: answer.status, headers, body: await answer.text() };
}

function withKey(request: Request, secret: string): Request {
  request.headers.set("authorization", `Bearer ${secret}`);
  return request;
}

/** The same secret with another last character in its random part. It is well formed except for its checksum. */
function mistyped(secret: string): string {
  return `${secret.slice(0, 20)}${secret[20] === "x" ? "y" : "x"}${secret.slice(21)}`;
}

describe("API keys (section 5.1)", () => {
  it("answer unknown, malformed, mistyped, revoked, expired and rotated keys alike", async () => {
    const { gateway, provider, clock, key, chat, createKey } = await createTestGateway();
    const other = await createTestGateway();
    const unknown = (await other.createKey({ label: "elsewhere" })).key;
    const revoked = await createKey();
    const expired = await createKey({ expiresAt: "2026-01-01T00:01:00Z" });
    const rotated = await createKey();
    for (const { chat } of [revoked, expired, rotated]) await gateway.fetch(chat());
    await gateway.keys.revoke({ organizationId: key.organizationId, id: revoked.key.id });
    await gateway.keys.rotate({ organizationId: key.organizationId, id: rotated.key.id });
    await clock.advance("1m");
    const before = await written(gateway);

    const secrets = [
      unknown.secret,
      "nonsense",
      `${key.secret}0`,
      mistyped(key.secret),
      revoked.key.secret,
      expired.key.secret,
      rotated.key.secret,
    ];
    const models = () =>
      new Request("http://in-process/v1/models", { headers: { authorization: "" } });
    const answers = await Promise.all(
      secrets.flatMap((secret) =>
        [chat(), chat({ stream: true }), chat({ top_k: 1 }), models()].map(async (request) =>
          seen(await gateway.fetch(withKey(request, secret))),
        ),
      ),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set([JSON.stringify(answers[0])]),
    );
    expect(answers[0]).toMatchObject({ status: 401, headers: { "x-should-retry": "false" } });
    expect(provider.calls).toHaveLength(3);
    expect(await written(gateway)).toEqual(before);
  });

  it("stop working at once when they are revoked, however recently they were read (S3)", async () => {
    const { gateway, key, chat } = await createTestGateway();
    expect((await gateway.fetch(chat())).status).toBe(200);
    await gateway.keys.revoke({ organizationId: key.organizationId, id: key.id });
    // A refusal opens no Step, which would have read the key again.
    for (const fields of [{}, { top_k: 1 }, { model: "nowhere/a/b" }])
      expect((await gateway.fetch(chat(fields))).status).toBe(401);
  });

  it("are refused by another gateway on the same store as soon as they are revoked", async () => {
    const a = await createTestGateway();
    const b = await createTestGateway({ store: a.store, clock: a.clock, ids: countingIds(1) });
    expect((await b.gateway.fetch(a.chat())).status).toBe(200);
    await a.gateway.keys.revoke({ organizationId: a.key.organizationId, id: a.key.id });
    expect((await b.gateway.fetch(a.chat())).status).toBe(401);
  });

  it("finish a running stream after they are revoked", async () => {
    const { gateway, provider, key, chat } = await createTestGateway();
    const hold = provider.hold({ afterEvents: 2 });
    provider.reply({ text: ["Hel", "lo"] });
    const answer = await gateway.fetch(chat({ stream: true }));
    await gateway.keys.revoke({ organizationId: key.organizationId, id: key.id });
    hold.release();
    expect(await answer.text()).toMatch(/"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/);
  });

  it("keep their Sessions when they are rotated, and the old secret works for the overlap", async () => {
    const { gateway, clock, key, chat } = await createTestGateway();
    const first = await completionOf(gateway.fetch(chat()));
    const reference = { organizationId: key.organizationId, id: key.id };
    const { secret } = await gateway.keys.rotate({ ...reference, overlap: "1h" });
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: "OK" },
      { role: "user", content: "More" },
    ];
    const next = await completionOf(gateway.fetch(withKey(chat({ messages }), secret)));
    expect(next.session_id).toBe(first.session_id);
    expect((await gateway.fetch(chat())).status).toBe(200);
    await clock.advance("1h");
    expect((await gateway.fetch(chat())).status).toBe(401);
    expect((await gateway.fetch(withKey(chat(), secret))).status).toBe(200);
  });

  it("label the activity of their calls, and record when they were last used", async () => {
    const { gateway, clock, key, chat } = await createTestGateway({ key: { label: "billing" } });
    await clock.advance("1h");
    await gateway.fetch(chat());
    await clock.advance("1m");
    const { organizationId, id } = key;
    const { data } = await gateway.activity.list({ organizationId });
    expect(data).toMatchObject([{ keyId: id, keyLabel: "billing", source: "api" }]);
    expect((await gateway.keys.get({ organizationId, id })).lastUsedAt).toBe(
      "2026-01-01T01:00:00.000Z",
    );
  });

  it("alone determine the caller, not any field of a request (S37)", async () => {
    const { gateway, key, chat } = await createTestGateway({
      budgets: [
        { id: "each", scope: { each: "organization" }, limit: { requests: 9 }, period: "day" },
      ],
    });
    const foreign = { organization: "other", organizationId: "other", user: "root", source: "app" };
    const plain = await completionOf(gateway.fetch(chat()));
    const claimed = await completionOf(
      gateway.fetch(
        chat(
          { metadata: foreign, user: "root", session_id: plain.session_id },
          { "x-organization": "other", "x-service-policy-decision-id": "mine" },
        ),
      ),
    );
    const { organizationId } = key;
    const { data: steps } = await gateway.steps.list({ organizationId });
    const { data: decisions } = await gateway.decisions.list({ organizationId });
    const facts = decisions.map(({ facts }) => facts);
    expect(facts[0]).toEqual(facts[1]);
    expect(steps.map(({ userId, source }) => [userId, source])).toEqual([
      ["user-1", "api"],
      ["user-1", "api"],
    ]);
    expect(claimed.usage).toEqual(plain.usage);
    expect((await gateway.budgets.status({ id: "each" })).data).toMatchObject([
      { subject: organizationId, settled: 2 },
    ]);
  });
});
