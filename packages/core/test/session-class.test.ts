import { combine, definePolicy, forbid, type Policy, permit } from "@tollgate/core/policy";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf, failureOf } from "./wire.ts";

const header = "x-service-data-sensitivity";
const [low, middle, high] = ["D1_INTERNAL", "D2_CONFIDENTIAL", "D3_RESTRICTED"] as const;
const raising = definePolicy({ rules: [permit("all")], sessions: "raise" });

const hello = { role: "user", content: "Hello" };
const again = { role: "user", content: "Again" };

/** A conversation that continues with each answer. */
function conversation({ gateway, chat }: TestGateway) {
  const messages: object[] = [hello];
  return async (dataClass: string | null, fields: Record<string, unknown> = {}) => {
    const headers = dataClass === null ? {} : { [header]: dataClass };
    const answer = await gateway.fetch(chat({ messages: [...messages], ...fields }, headers));
    if (answer.status === 200) {
      const { choices } = await completionOf(answer.clone());
      messages.push(choices[0]?.message ?? {}, again);
    }
    return answer;
  };
}

async function recordOf({ gateway, key: { organizationId } }: TestGateway) {
  const [step] = (await gateway.steps.list({ organizationId })).data;
  const id = step?.decisionId ?? "";
  const { facts } = await gateway.decisions.get({ organizationId, id });
  return { step: step?.dataClass, decided: facts.dataClass, session: facts.session };
}

describe.each(stores)("the data class of a Session on %s", (_, open) => {
  const openWith = (policy: Policy) => createTestGateway({ store: open(), policy });

  it("raises a default to it and refuses a header below it, if the policy says so", async () => {
    const test = await openWith(raising);
    const say = conversation(test);
    expect((await say(null)).headers.get(header)).toBe(low);
    expect((await say(high)).headers.get(header)).toBe(high);
    expect((await say(null)).headers.get(header)).toBe(high);
    expect(await recordOf(test)).toEqual({
      step: high,
      decided: high,
      session: { dataClass: high },
    });
    const below = await say(middle);
    expect(below.status).toBe(400);
    expect(await failureOf(below)).toMatchObject({
      code: "data_class_below_floor",
      param: "X-Service-Data-Sensitivity",
      message: `The data class is below the class of the Session it continues, ${high}.`,
    });
    expect(test.provider.calls).toHaveLength(3);
  });

  it("keeps the class of a branch's origin", async () => {
    const test = await openWith(raising);
    const say = conversation(test);
    const { session_id } = await completionOf(say(high));
    const rewound = await say(null, {
      messages: [hello, { role: "user", content: "Other" }],
      session_id,
    });
    expect(rewound.headers.get(header)).toBe(high);
    expect((await completionOf(rewound)).session_id).not.toBe(session_id);
    const fresh = await say(null, { messages: [{ role: "user", content: "New" }] });
    expect(fresh.headers.get(header)).toBe(low);
    expect((await recordOf(test)).session).toBeUndefined();
  });

  it("stays per request by default, and lets a rule decide on it", async () => {
    const policy = definePolicy({
      rules: [permit("all"), forbid("no-mixing", { session: { from: middle }, upTo: low })],
    });
    const test = await openWith(policy);
    const say = conversation(test);
    expect((await say(middle)).headers.get(header)).toBe(middle);
    expect(await failureOf(say(null))).toMatchObject({ code: "policy_denied" });
    const plain = await openWith(definePolicy({ rules: [permit("all")] }));
    const tell = conversation(plain);
    await tell(high);
    expect((await tell(null)).headers.get(header)).toBe(low);
    expect((await recordOf(plain)).session).toBeUndefined();
  });

  it("never takes the class of another key's Session", async () => {
    const store = open();
    const test = await createTestGateway({ store, policy: raising });
    const say = conversation(test);
    await say(high);
    expect((await say(null)).headers.get(header)).toBe(high);
    const { organizationId } = test.key;
    for (const owner of [
      { organizationId, userId: "user-2" },
      { organizationId: "organization-2", userId: "user-1" },
    ]) {
      const { secret } = await test.gateway.keys.create({ ...owner, label: "other" });
      const answer = await test.gateway.fetch(
        test.chat({ messages: [hello] }, { authorization: `Bearer ${secret}` }),
      );
      expect(answer.headers.get(header)).toBe(low);
    }
  });
});

describe("a Session's class under concurrency", () => {
  it("is decided again if another request raised it before the Step opened", async () => {
    const memory = stores[0]?.[1]();
    if (!memory) throw new Error("no store");
    let raise = async (): Promise<unknown> => null;
    const sessions = {
      ...memory.sessions,
      async find(lookup: Parameters<typeof memory.sessions.find>[0]) {
        const found = await memory.sessions.find(lookup);
        const now = raise;
        raise = async () => null;
        await now();
        return found;
      },
    };
    const test = await createTestGateway({ store: { ...memory, sessions }, policy: raising });
    const say = conversation(test);
    const { session_id } = await completionOf(say(low));
    raise = () => say(high, { session_id });
    const answer = await say(null, { session_id });
    expect(answer.headers.get(header)).toBe(high);
    const { data } = await test.gateway.steps.list({ organizationId: test.key.organizationId });
    expect(data.map(({ dataClass }) => dataClass)).toEqual([high, high, low]);
  });
});

describe("a policy's member `sessions`", () => {
  it("is `raise` or absent, and part of the version", () => {
    const wrong: object = { rules: [permit("all")], sessions: "lower" };
    const load = (definition: object) => () => Reflect.apply(definePolicy, null, [definition]);
    expect(load(wrong)).toThrow(/sessions/);
    expect(load({ ...wrong, sessions: null })).toThrow(/sessions/);
    expect(load({ rules: [permit("a", { session: { form: "D1" } as object })] })).toThrow(
      /rules\[0\]\.match\.session\.form/,
    );
    const plain = definePolicy({ rules: [permit("all")] });
    expect(raising.version).not.toBe(plain.version);
    expect(combine(plain, raising).sessions).toBe("raise");
    expect(plain.sessions).toBe("ignore");
  });

  it("is refused if a handwritten policy mistypes it", async () => {
    const policy = { ...raising, ...JSON.parse('{ "sessions": "rasie" }') };
    await expect(createTestGateway({ policy })).rejects.toThrow(/policy\.sessions/);
  });

  it("checks the classes that rules on Sessions name at start", async () => {
    const policy = definePolicy({ rules: [permit("all", { session: { upTo: "D9" } })] });
    await expect(createTestGateway({ policy })).rejects.toThrow(/D9/);
  });
});
