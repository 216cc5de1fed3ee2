import { lineageOf } from "@tollgate/store-engine";
import { sessionToRow } from "@tollgate/store-sql";
import { expect, it } from "vitest";
import { session } from "../../../store-engine/test/session.ts";
import { askFetching } from "./ask-fetching.ts";

it("reads each fetched row once, however many rows a question fetches one by one", async () => {
  const count = 200;
  let [fetches, readings] = [0, 0];
  const rowOf = (id: string): object => {
    const place = Number(id.split(" ")[1]);
    const historyFromSessionId = place === 0 ? null : `session ${place - 1}`;
    const row = sessionToRow(session(id, 1, { head: "00", historyFromSessionId }), place);
    return Object.defineProperty({ ...row }, "id", {
      get() {
        readings++;
        return id;
      },
    });
  };
  const all = async (_: string, parameters: Readonly<Record<string, unknown>>) => {
    fetches++;
    return [rowOf(String(parameters["id"]))];
  };
  const lineage = await askFetching({ all, query: all }, (view) => {
    const last = view.session("acme", `session ${count - 1}`);
    return last ? lineageOf(view, last) : [];
  });
  expect(lineage.map((segment) => segment.session.id)).toEqual(
    Array.from({ length: count }, (_, at) => `session ${at}`),
  );
  expect([fetches, readings]).toEqual([count, count]);
});
