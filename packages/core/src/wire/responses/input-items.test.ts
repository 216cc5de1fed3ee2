import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { listInputItems, storedInput } from "./input-items.ts";
import { parseResponse } from "./parse.ts";

const response = "resp_0190a00000007000800000000000000a";
const idOf = (kind: string, place: string) => `${kind}_0190a00000007000800000000000000a_${place}`;
const store = (input: unknown) =>
  storedInput(parseResponse({ model: "sim/acme/echo", input }, defaultLimits).input, response);

describe("stored input", () => {
  it("has an id, a status and the shape of its kind", () => {
    const text = (type: string) => ({ type, text: "Hi" });
    const call = { call_id: "call_1", name: "look", arguments: "{}" };
    expect(
      store([
        { role: "user", content: "Hi" },
        { id: "msg_theirs", role: "assistant", content: [text("output_text")] },
        { type: "function_call", id: "fc_theirs", ...call },
        { type: "function_call_output", call_id: "call_1", output: "A cat.", status: "incomplete" },
        { type: "reasoning", id: "rs_theirs", summary: [] },
      ]),
    ).toEqual([
      {
        id: idOf("msg", "i0"),
        type: "message",
        status: "completed",
        role: "user",
        content: [text("input_text")],
      },
      {
        id: idOf("msg", "i1"),
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ ...text("output_text"), annotations: [], logprobs: [] }],
      },
      { id: idOf("fc", "i2"), type: "function_call", status: "completed", ...call },
      {
        id: idOf("fco", "i3"),
        type: "function_call_output",
        status: "completed",
        call_id: "call_1",
        output: "A cat.",
      },
      { id: idOf("rs", "i4"), type: "reasoning", status: "completed", summary: [] },
    ]);
  });

  it("replaces the id of an item of another response", () => {
    const [item] = storedInput(storedInput(store("Hi"), "resp_other"), response);
    expect(item).toEqual(store("Hi")[0]);
  });

  it("rejects references", () => {
    expect(() => storedInput([{ type: "item_reference", id: "a" }], response)).toThrow("reference");
  });
});

describe("the list of input items", () => {
  const items = store(Array.from({ length: 25 }, (_, at) => ({ role: "user", content: `${at}` })));
  const places = (query: string) => {
    const list = JSON.parse(listInputItems(items, new URLSearchParams(query)));
    expect(list.object).toBe("list");
    expect(list.first_id).toBe(list.data.at(0)?.id ?? null);
    expect(list.last_id).toBe(list.data.at(-1)?.id ?? null);
    return [list.data.map(({ id }: { id: string }) => Number(id.split("_i")[1])), list.has_more];
  };
  const down = (from: number, count: number) => Array.from({ length: count }, (_, at) => from - at);
  const up = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);

  it.each([
    ["", down(24, 20), true],
    ["include[]=message.output_text.logprobs", down(24, 20), true],
    ["order=asc", up(0, 20), true],
    ["order=asc&limit=100", up(0, 25), false],
    ["limit=25", down(24, 25), false],
    ["limit=1", [24], true],
    [`order=asc&limit=2&after=${idOf("msg", "i3")}`, [4, 5], true],
    [`limit=3&after=${idOf("msg", "i3")}`, [2, 1, 0], false],
    [`after=${idOf("msg", "i0")}`, [], false],
  ])("returns a page for ?%s", (query, expected, hasMore) => {
    expect(places(query)).toEqual([expected, hasMore]);
  });

  it("is complete when each page begins after the last id of the one before, in either order", () => {
    for (const order of ["asc", "desc"]) {
      const seen: string[] = [];
      let after = "";
      for (;;) {
        const query = new URLSearchParams({ order, limit: "4", ...(after && { after }) });
        const list = JSON.parse(listInputItems(items, query));
        seen.push(...list.data.map(({ id }: { id: string }) => id));
        if (!list.has_more) break;
        after = list.last_id;
      }
      const all = items.map(({ id }) => id);
      expect(seen).toEqual(order === "asc" ? all : all.toReversed());
    }
  });

  it.each([
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=-1", "limit"],
    ["limit=1.5", "limit"],
    ["limit=ten", "limit"],
    ["limit=", "limit"],
    ["limit=1&limit=2", "limit"],
    ["order=up", "order"],
    ["order=", "order"],
    ["after=", "after"],
    [`after=${idOf("msg", "i25")}`, "after"],
    [`after=${idOf("fc", "i3")}`, "after"],
  ])("rejects ?%s", (query, param) => {
    try {
      listInputItems(items, new URLSearchParams(query));
    } catch (error) {
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toMatchObject({ code: "invalid_value", param });
      return;
    }
    throw new Error("the query was accepted");
  });
});
