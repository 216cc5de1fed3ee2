import { expect, it } from "vitest";
import { itemId, responseId, responseIdOfItem } from "./item-ids.ts";

const response = responseId("0190a000-0000-7000-8000-00000000000a");

it("a response has the id of its Step, and items carry it", () => {
  expect(response).toBe("resp_0190a000000070008000" + "00000000000a");
  expect(itemId("msg", response, "o0")).toBe("msg_0190a00000007000800000000000000a_o0");
  expect(responseIdOfItem(itemId("fc", response, "i12"))).toBe(response);
  expect(responseIdOfItem(itemId("fco", response, "i0"))).toBe(response);
  expect(responseIdOfItem(itemId("rs", response, "o3"))).toBe(response);
});

it.each([
  "",
  "msg_1",
  response,
  `${itemId("msg", response, "o0")}\n`,
  itemId("msg", response, "o0").toUpperCase(),
  itemId("msg", response, "o0").replace("msg", "ws"),
  itemId("msg", response, "o0").replace("_o0", "_o00"),
  itemId("msg", response, "o0").replace("_o0", "_x0"),
  itemId("msg", response, "o-1"),
])("%j is not the id of an item", (id) => {
  expect(responseIdOfItem(id)).toBeNull();
});
