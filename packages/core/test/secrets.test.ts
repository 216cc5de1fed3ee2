import { hash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { everyOrganization, GatewayError, type OrganizationScope } from "@tollgate/core";
import { ProviderError } from "@tollgate/core/provider";
import { sqliteStore } from "@tollgate/store-sqlite";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";

/** Every form in which a secret could leak. Only `tg_` and four characters of a key may be visible. */
function formsOf(secret: string): readonly string[] {
  return [
    secret,
    secret.slice(0, 8),
    secret.slice(-8),
    hash("sha256", secret),
    hash("sha256", secret, "base64"),
    Buffer.from(secret).toString("base64"),
    Buffer.from(secret).toString("hex"),
    encodeURIComponent(`${secret}/`).slice(0, -3),
  ];
}

const upstreamSecret = "sk-upstream-canary-0123456789";

/** Sends requests that end in many ways, and returns their answers with headers. */
async function everyAnswer({ gateway, provider, clock, key, chat }: TestGateway) {
  const { secret } = key;
  provider.fail(
    new ProviderError("The provider failed.", {
      reason: "status_500",
      delivery: "unknown",
      status: 500,
      cause: new Error(upstreamSecret),
    }),
  );
  provider.fail(new Error(upstreamSecret), { afterEvents: 2 });
  const requests = [
    chat({ model: "test/a/failing" }),
    chat({ stream: true }),
    chat(),
    chat({ stream: true }),
    chat({ model: "nowhere/a/b" }),
    chat({ model: secret }),
    chat({ session_id: secret }),
    chat({}, { "x-service-data-sensitivity": secret }),
    chat({}, { authorization: `Bearer ${secret}x` }),
    chat({}, { authorization: `Basic ${secret}` }),
    new Request(`http://in-process/v1/${secret}`),
    new Request("http://in-process/v1/models", { headers: { authorization: `Bearer ${secret}` } }),
  ];
  const answers: string[] = [];
  for (const request of requests) {
    const answer = await clock.until(gateway.fetch(request));
    answers.push(inspect([...answer.headers]), await clock.until(answer.text()));
  }
  return answers;
}

describe.each(stores)("secrets, with %s (S14)", (name, open) => {
  it("appear nowhere: not in answers, events, errors, records or the gateway itself", async () => {
    const log = eventLog();
    const store = open();
    const test = await createTestGateway({
      store,
      observers: log.observers,
      key: { minimumDataClass: "D0_PUBLIC" },
    });
    const { gateway, key } = test;
    const answers = await everyAnswer(test);
    const all: OrganizationScope = { organizationId: everyOrganization };
    const { organizationId } = key;
    const sessions = (await gateway.sessions.list(all)).data;
    const records = [
      (await gateway.keys.list(all)).data,
      (await gateway.steps.list(all)).data,
      (await gateway.decisions.list(all)).data,
      (await gateway.activity.list(all)).data,
      sessions,
      await Promise.all(
        sessions.map(({ id }) => gateway.sessions.transcript({ organizationId, id })),
      ),
      (await store.evidence.list({ organizationId }, { cursor: null, limit: 1_000 })).data,
    ];
    const thrown = await gateway.keys
      .update({ organizationId, id: key.id, defaultDataClass: key.secret })
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(GatewayError);
    const said = [
      ...answers,
      String(thrown),
      inspect(log.seen, { depth: 9 }),
      inspect(records, { depth: 9, maxArrayLength: null, maxStringLength: null }),
      inspect(gateway, { depth: 9, showHidden: true }),
    ];
    for (const secret of [key.secret, upstreamSecret])
      for (const form of formsOf(secret))
        for (const text of said) expect(text.includes(form), `${form} of ${name}`).toBe(false);
  });
});

describe("a database file (S14)", () => {
  it("contains no form of a secret except the digest that finds a key", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-secrets-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const store = sqliteStore({ filename: join(folder, "tollgate.db") });
    const test = await createTestGateway({ store });
    await everyAnswer(test);
    const bytes = () =>
      Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))));
    expect(bytes().includes(hash("sha256", test.key.secret, "buffer"))).toBe(true);
    await store.close();
    for (const secret of [test.key.secret, upstreamSecret])
      for (const form of formsOf(secret)) expect(bytes().includes(form), form).toBe(false);
  });
});
