import { afterAll, describe, expect, it } from "vitest";
import { createGovernedChat } from "../src/governed-chat.ts";

const gateway = createGovernedChat();
afterAll(() => gateway.close());

interface Question {
  readonly secret: string;
  readonly model?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const ask = ({ secret, model = "sim/tollgate/echo", headers = {} }: Question) =>
  gateway.fetch("http://in-process/v1/chat/completions", {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      ...headers,
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
  });

const newKey = async (userId: string) =>
  (await gateway.keys.create({ organizationId: "acme", userId, label: "laptop" })).secret;

describe("a gateway in process", () => {
  it("answers and records permitted calls", async () => {
    const answer = await ask({ secret: await newKey("ada") });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-service-data-sensitivity")).toBe("D1_INTERNAL");
    const { data } = await gateway.activity.list({ organizationId: "acme", user: "ada" });
    expect(data).toEqual([expect.objectContaining({ gateway: "sim", keyLabel: "laptop" })]);
  });

  it("denies a forbidden model, and data above the permitted class", async () => {
    const secret = await newKey("grace");
    const confidential = { "x-service-data-sensitivity": "D2_CONFIDENTIAL" };
    expect((await ask({ secret, model: "sim/tollgate/echo-preview" })).status).toBe(403);
    expect((await ask({ secret, headers: confidential })).status).toBe(403);
    expect((await gateway.activity.list({ organizationId: "acme", user: "grace" })).data).toEqual(
      [],
    );
  });

  it("stops at the Budget, even if calls arrive at the same time", async () => {
    const secret = await newKey("edsger");
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask({ secret })));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 429, 429, 429]);
  });
});
