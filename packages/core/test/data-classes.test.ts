import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { countingIds, createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { failureOf } from "./wire.ts";

const header = "x-service-data-sensitivity";
const floor = "D1_INTERNAL";
const usual = "D2_CONFIDENTIAL";
const open = () => createTestGateway({ key: { minimumDataClass: floor, defaultDataClass: usual } });

describe("data sensitivity (section 5.3)", () => {
  it.each([
    [undefined, usual],
    ["D3_RESTRICTED", "D3_RESTRICTED"],
    [usual, usual],
    [floor, floor],
  ])(
    "reads the header %s as %s, in the answer and in the record (DS1)",
    async (sent, effective) => {
      for (const stream of [false, true]) {
        const { gateway, key, chat } = await open();
        const answer = await gateway.fetch(
          chat({ stream }, sent === undefined ? {} : { [header]: sent }),
        );
        await answer.text();
        const { organizationId } = key;
        const { data } = await gateway.steps.list({ organizationId });
        expect(answer.status).toBe(200);
        expect(answer.headers.get(header)).toBe(effective);
        expect(data).toMatchObject([{ dataClass: effective }]);
        const id = answer.headers.get("x-service-policy-decision-id") ?? "";
        const decision = await gateway.decisions.get({ organizationId, id });
        expect(decision).toMatchObject({
          id: data[0]?.decisionId,
          facts: { dataClass: effective },
        });
      }
    },
  );

  it.each([
    ["D0_PUBLIC", "data_class_below_floor"],
    ["D9", "invalid_data_class"],
    ["d2_confidential", "invalid_data_class"],
    ["D2_CONFIDENTIAL, D3_RESTRICTED", "invalid_data_class"],
    ["D2 CONFIDENTIAL", "invalid_data_class"],
    ["", "invalid_data_class"],
    ["2", "invalid_data_class"],
  ])("refuses the header %j with %s instead of raising it silently (S38)", async (sent, code) => {
    const { gateway, provider, chat } = await open();
    const answer = await gateway.fetch(chat({}, { [header]: sent }));
    expect(answer.status).toBe(400);
    expect(await failureOf(answer)).toMatchObject({ code, param: "X-Service-Data-Sensitivity" });
    expect(provider.calls).toEqual([]);
  });

  it("refuses a header that is sent twice (S38)", async () => {
    const { gateway, chat } = await open();
    const request = chat({}, { [header]: usual });
    request.headers.append(header, usual);
    expect(await failureOf(gateway.fetch(request))).toMatchObject({ code: "invalid_data_class" });
  });

  it("can't be set by a body field (S38)", async () => {
    const { gateway, chat } = await open();
    for (const name of ["X-Service-Data-Sensitivity", "data_sensitivity"]) {
      const failure = await failureOf(gateway.fetch(chat({ [name]: "D0_PUBLIC" })));
      expect(failure).toMatchObject({ code: "unknown_parameter", param: name });
    }
  });

  it("is checked for every model, the first one and every fallback (S38)", async () => {
    const policy = definePolicy({
      rules: [
        permit(
          "first",
          { model: "test/a/first", upTo: "D3_RESTRICTED" },
          { fallbacks: ["test/a/public", "test/a/cleared"] },
        ),
        permit("public", { model: "test/a/public", upTo: "D1_INTERNAL" }),
        permit("cleared", { model: "test/a/cleared", upTo: "D2_CONFIDENTIAL" }),
      ],
    });
    const { gateway, provider, chat } = await createTestGateway({ policy, retries: { max: 0 } });
    const down = new ProviderError("Down.", { reason: "down", delivery: "not-sent" });
    provider.fail(down, { when: (call) => call.model === "a/first", times: 2 });
    const ask = (dataClass: string) =>
      gateway.fetch(chat({ model: "test/a/first" }, { [header]: dataClass }));
    expect((await ask("D2_CONFIDENTIAL")).status).toBe(200);
    expect((await ask("D3_RESTRICTED")).status).toBe(502);
    expect(provider.calls.map(({ model }) => model)).toEqual(["a/first", "a/cleared", "a/first"]);
  });

  it("treats a key's class that is no longer configured as the most sensitive one", async () => {
    const store = memoryStore();
    const classes = { minimumDataClass: "SECRET", defaultDataClass: "SECRET" };
    const before = await createTestGateway({ store, dataClasses: ["LOW", "SECRET"], key: classes });
    const policy = definePolicy({ rules: [permit("low", { upTo: "MIDDLE" })] });
    const dataClasses = ["LOW", "MIDDLE", "HIGH"];
    const after = await createTestGateway({
      store,
      policy,
      dataClasses,
      key: { userId: "other", defaultDataClass: "LOW" },
      ids: countingIds(9),
    });
    const ask = (headers = {}) => after.gateway.fetch(before.chat({}, headers));
    const plain = await ask();
    expect([plain.status, plain.headers.get(header)]).toEqual([403, "HIGH"]);
    expect(await failureOf(ask({ [header]: "LOW" }))).toMatchObject({
      code: "data_class_below_floor",
    });
  });

  it("is never below the key's floor, even if the order of the classes changed", async () => {
    const store = memoryStore();
    const key = { minimumDataClass: "LOW", defaultDataClass: "HIGH" };
    const before = await createTestGateway({ store, dataClasses: ["LOW", "HIGH"], key });
    for (const dataClasses of [
      ["HIGH", "LOW"],
      ["HIGH", "HIGHEST"],
    ]) {
      const other = { userId: "other", minimumDataClass: "HIGH", defaultDataClass: "HIGH" };
      const ids = countingIds(dataClasses.indexOf("LOW") + 9);
      const after = await createTestGateway({ store, dataClasses, key: other, ids });
      const ask = (headers = {}) => after.gateway.fetch(before.chat({}, headers));
      expect((await ask()).headers.get(header)).toBe(dataClasses[1]);
      expect((await failureOf(ask({ [header]: "HIGH" }))).code).toBe("data_class_below_floor");
    }
  });

  it("follows the configured classes and header prefix", async () => {
    const { gateway, chat } = await createTestGateway({
      dataClasses: ["open", "closed"],
      headerPrefix: "X-Acme-",
    });
    const answer = await gateway.fetch(chat({}, { "x-acme-data-sensitivity": "open" }));
    expect(answer.headers.get("x-acme-data-sensitivity")).toBe("open");
    expect(answer.headers.get("x-acme-policy-decision-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(
      await failureOf(gateway.fetch(chat({}, { "x-acme-data-sensitivity": "D0" }))),
    ).toMatchObject({ code: "invalid_data_class", param: "X-Acme-Data-Sensitivity" });
  });
});
