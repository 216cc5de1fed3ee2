import type { StepFilter } from "@tollgate/core";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";

const organizationId = "organization-1";
const format = "csv";

/** Every method with a time range, by name. An export is read, because it is refused when it begins or at once. */
async function ranged() {
  const { gateway, clock } = await createTestGateway();
  const { activity, steps, decisions, changes } = gateway;
  const text = async (open: () => ReadableStream<Uint8Array>) => new Response(open()).text();
  const prices = {};
  const methods: Readonly<Record<string, (filter: StepFilter) => PromiseLike<unknown>>> = {
    "activity.list": (filter) => activity.list(filter),
    "activity.summarize": (filter) => activity.summarize(filter, []),
    "activity.export": (filter) => text(() => activity.export(filter, { format })),
    "steps.list": (filter) => steps.list(filter),
    "steps.summarize": (filter) => steps.summarize(filter, []),
    "steps.series": (filter) => steps.series(filter, { bucket: "day" }),
    "steps.export": (filter) => text(() => steps.export(filter, { format })),
    "steps.reprice": (filter) => steps.reprice(filter, { prices }),
    "decisions.list": (filter) => decisions.list(filter),
    "decisions.export": (filter) => text(() => decisions.export(filter, { format })),
    "changes.list": (filter) => changes.list(filter),
    "changes.export": (filter) => text(() => changes.export(filter, { format })),
    reconcileUsage: (filter) => gateway.reconcileUsage(filter),
  };
  return { methods: Object.entries(methods), gateway, clock };
}

const refused = (param: string, message: string) => ({ code: "invalid_argument", param, message });

describe("a range of a filter", () => {
  it("may not begin after its end, whatever the offsets of the times are", async () => {
    const { methods } = await ranged();
    const wrong = refused("from", "`from` must not be after `to`.");
    for (const [name, call] of methods) {
      const filter = { organizationId, from: "2026-01-02", to: "2026-01-01" };
      await expect(
        Promise.resolve().then(() => call(filter)),
        name,
      ).rejects.toMatchObject(wrong);
      const [from, to] = ["2026-01-01T11:00:01Z", "2026-01-01T12:00:00+01:00"];
      const late = Promise.resolve().then(() => call({ organizationId, from, to }));
      await expect(late, name).rejects.toMatchObject(wrong);
      await call({ organizationId, from: "2026-01-01T11:00:00Z", to });
    }
  });

  it("of hours to compare names its begin if it ends before the default begin", async () => {
    const { gateway } = await ranged();
    const filter = { organizationId, to: "2025-12-01T23:59:59Z" };
    await expect(gateway.reconcileUsage(filter)).rejects.toMatchObject(
      refused("from", "`from` must be given if `to` is more than 30 days ago."),
    );
    await gateway.reconcileUsage({ ...filter, from: "2025-12-01" });
  });

  it("of data classes may not begin above its end", async () => {
    const { gateway } = await ranged();
    const dataClass = { from: "D2_CONFIDENTIAL", upTo: "D1_INTERNAL" };
    for (const noun of [gateway.activity, gateway.steps, gateway.decisions])
      await expect(noun.list({ organizationId, dataClass })).rejects.toMatchObject(
        refused("dataClass", "`dataClass.from` must not be above `dataClass.upTo`."),
      );
  });
});
