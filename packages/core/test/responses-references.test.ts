import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { countingIds, createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { responseOf, responsesOf } from "./responses-calls.ts";
import { failureOf } from "./wire.ts";

const dataClassHeader = "x-service-data-sensitivity";

async function start(options: TestGatewayOptions = {}) {
  const test = await createTestGateway({ maintenance: false, ...options });
  return { ...test, responses: responsesOf(test.gateway, test.key.secret) };
}

describe("the content that a request refers to is limited like its own", () => {
  const limits = { imageBodyBytes: 20_000, bodyBytes: 20_000, messages: 8 };

  it("in bytes, counting the same item each time", async () => {
    const { provider, responses } = await start({ limits });
    const { id } = await responses.create({ input: "x".repeat(9_000) });
    const input = { type: "item_reference", id: `${id.replace("resp_", "msg_")}_i0` };
    expect((await responses.post({ input: [input, input] })).status).toBe(200);
    const answer = await responses.post({ input: [input, input, input] });
    expect(answer.status).toBe(413);
    expect(await failureOf(answer)).toMatchObject({ code: "request_too_large" });
    expect(provider.calls).toHaveLength(2);
  });

  it("in bytes, along a chain and including referenced items", async () => {
    const { responses } = await start({ limits });
    const long = "x".repeat(9_000);
    const first = await responses.create({ input: long });
    const second = await responses.create({ input: long, previous_response_id: first.id });
    const third = await responses.create({ input: long, previous_response_id: second.id });
    expect((await responses.post({ previous_response_id: third.id })).status).toBe(413);
    const item = { type: "item_reference", id: `${first.id.replace("resp_", "msg_")}_i0` };
    const both = { input: [item], previous_response_id: second.id };
    expect((await responses.post(both)).status).toBe(413);
    expect((await responses.get(third.id)).status).toBe(200);
  });

  it("in memory, as if each request had brought it", async () => {
    const { responses } = await start({ limits: { bytesInFlightPerKey: 1_000_000 } });
    const { id, output } = await responses.create({ input: "x".repeat(300_000) });
    const item = { type: "item_reference", id: `${id.replace("resp_", "msg_")}_i0` };
    for (const refers of [{ previous_response_id: id }, { input: [item] }]) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => responses.post({ ...refers, stream: true, store: false })),
      );
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).toEqual([200, 200, 200, 503, 503, 503, 503, 503]);
      for (const answer of answers) await answer.text();
    }
    const small = { type: "item_reference", id: output[0]?.id };
    expect((await responses.post({ input: [small] })).status).toBe(200);
  });

  it("in time: other work runs between the responses that contain it", async () => {
    const { responses } = await start();
    const input: object[] = [];
    for (let at = 0; at < 20; at++) {
      const { output } = await responses.create({ input: "x".repeat(200_000) });
      input.push({ type: "item_reference", id: output[0]?.id });
    }
    let turns = 0;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    expect((await responses.post({ input })).status).toBe(200);
    clearImmediate(next);
    expect(turns).toBeGreaterThan(8);
  });

  it("in the size of the responses that contain it", async () => {
    const { responses } = await start({ limits: { ...limits, messages: 100 } });
    const references = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { output } = await responses.create({ input: "x".repeat(9_000) });
        return { type: "item_reference", id: output[0]?.id };
      }),
    );
    expect((await responses.post({ input: references.slice(0, 15) })).status).toBe(200);
    const answer = await responses.post({ input: references });
    expect(await failureOf(answer)).toMatchObject({ code: "request_too_large" });
  });

  it("in bytes, counting each item of a response separately", async () => {
    const { responses } = await start({ limits });
    const texts = ["x".repeat(9_000), "x".repeat(100)];
    const { id } = await responses.create({
      input: texts.map((content) => ({ role: "user", content })),
    });
    const [long, short] = texts.map((_, at) => ({
      type: "item_reference",
      id: `${id.replace("resp_", "msg_")}_i${at}`,
    }));
    const most = [short, long, short, long, short];
    expect((await responses.post({ input: most })).status).toBe(200);
    const answer = await responses.post({ input: [short, long, long, short, long] });
    expect(await failureOf(answer)).toMatchObject({ code: "request_too_large" });
  });

  it("in comparisons, which are far fewer than items times references", async () => {
    const { responses } = await start();
    const input = Array.from({ length: 1_000 }, () => ({ role: "user", content: "Hello" }));
    const { id } = await responses.create({ input });
    const references = input.map((_, at) => ({
      type: "item_reference",
      id: `${id.replace("resp_", "msg_")}_i${at}`,
    }));
    const filter = vi.spyOn(Array.prototype, "filter");
    onTestFinished(() => filter.mockRestore());
    expect((await responses.post({ input: references })).status).toBe(200);
    expect(filter.mock.contexts.flat().length).toBeLessThan(100_000);
  });

  it("in reads, of which there is none after the first unknown response", async () => {
    const store = memoryStore();
    let reads = 0;
    const counting: Store = {
      ...store,
      responses: {
        ...store.responses,
        get(...query) {
          reads++;
          return store.responses.get(...query);
        },
      },
    };
    const { responses } = await start({ store: counting });
    const { id } = await responses.create({ input: "Hello" });
    const known = { type: "item_reference", id: `${id.replace("resp_", "msg_")}_i0` };
    const unknown = Array.from({ length: 50 }, (_, at) => ({
      type: "item_reference",
      id: `msg_${"0".repeat(30)}${String(at).padStart(2, "0")}_o0`,
    }));
    const answer = await responses.post({ input: [known, ...unknown] });
    expect(await failureOf(answer)).toMatchObject({ code: "item_not_found", param: "input[1]" });
    expect(reads).toBe(2);
  });

  it("in messages", async () => {
    const { responses } = await start({ limits });
    let id: string | null = null;
    for (let turn = 0; turn < 4; turn++)
      ({ id } = await responses.create({ previous_response_id: id }));
    const answer = await responses.post({ previous_response_id: id });
    expect(answer.status).toBe(400);
    expect(await failureOf(answer)).toMatchObject({ code: "invalid_value", param: "input" });
  });
});

describe("the data class of a response that is referred to", () => {
  const keyOf = { defaultDataClass: "D1_INTERNAL", minimumDataClass: "D0_PUBLIC" } as const;
  const confidential = { [dataClassHeader]: "D2_CONFIDENTIAL" };

  it("raises the class of requests that refer to it, by id or by item", async () => {
    const { responses } = await start({ key: keyOf });
    const first = await responses.create({ input: "Secret" }, confidential);
    const reference = { type: "item_reference", id: first.output[0]?.id };
    for (const fields of [{ previous_response_id: first.id }, { input: [reference] }]) {
      const answer = await responses.post(fields);
      expect([answer.status, answer.headers.get(dataClassHeader)]).toEqual([
        200,
        "D2_CONFIDENTIAL",
      ]);
      const next = await responseOf(answer);
      const further = await responses.post({ previous_response_id: next.id });
      expect(further.headers.get(dataClassHeader)).toBe("D2_CONFIDENTIAL");
    }
  });

  it("is never lowered by the header: 400 before the decision", async () => {
    const { provider, gateway, key, responses } = await start({ key: keyOf });
    const first = await responses.create({ input: "Secret" }, confidential);
    const reference = { type: "item_reference", id: first.output[0]?.id };
    for (const fields of [{ previous_response_id: first.id }, { input: [reference] }]) {
      const answer = await responses.post(fields, { [dataClassHeader]: "D1_INTERNAL" });
      expect(answer.status).toBe(400);
      expect(answer.headers.get("x-service-policy-decision-id")).toBeNull();
      expect(await failureOf(answer)).toMatchObject({
        code: "data_class_below_floor",
        param: "X-Service-Data-Sensitivity",
      });
    }
    expect(provider.calls).toHaveLength(1);
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data).toHaveLength(1);
  });

  it("counts as the highest if it is no longer configured", async () => {
    const store = memoryStore();
    const first = await start({ store });
    const { id } = await first.responses.create({}, { [dataClassHeader]: "D3_RESTRICTED" });
    const dataClasses = ["D0_PUBLIC", "D1_INTERNAL", "D2_CONFIDENTIAL"];
    const { gateway } = await start({ store, dataClasses, ids: countingIds(1) });
    const answer = await responsesOf(gateway, first.key.secret).post({ previous_response_id: id });
    expect(answer.headers.get(dataClassHeader)).toBe("D2_CONFIDENTIAL");
  });

  it("may be raised further by the header", async () => {
    const { responses } = await start({ key: keyOf });
    const first = await responses.create({}, confidential);
    const answer = await responses.post(
      { previous_response_id: first.id },
      { [dataClassHeader]: "D3_RESTRICTED" },
    );
    expect(answer.headers.get(dataClassHeader)).toBe("D3_RESTRICTED");
  });
});
