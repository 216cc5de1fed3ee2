import { lineageOf, type SessionState } from "@tollgate/store-engine";
import { sessionToRow } from "@tollgate/store-sql";
import { expect, it } from "vitest";
import { askFetching } from "./ask-fetching.ts";

const session: SessionState = {
  id: "session 0",
  organizationId: "acme",
  userId: "ada",
  keyId: "key",
  source: "api",
  head: "00",
  length: 1,
  dataClasses: [],
  createdAt: 0,
  updatedAt: 0,
  branchedFromSessionId: null,
  commonLength: 0,
  rootSessionId: null,
  historyFromSessionId: null,
  updated: 0,
  inFlight: false,
  turnId: "turn",
};

it("reads each fetched row once, however many rows a question fetches one by one", async () => {
  const count = 200;
  let [fetches, readings] = [0, 0];
  const rowOf = (id: string): object => {
    const place = Number(id.split(" ")[1]);
    const historyFromSessionId = place === 0 ? null : `session ${place - 1}`;
    const row = sessionToRow({ ...session, id, historyFromSessionId }, place);
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
