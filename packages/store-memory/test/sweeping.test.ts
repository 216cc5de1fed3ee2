import { expect, it } from "vitest";
import { owner } from "../../store-engine/test/step-intents.ts";
import { createState } from "../src/state.ts";
import { viewOf } from "../src/view.ts";

it("looks through its rows once for each sweep, however many organizations there are", () => {
  const { steps, sessions, ...state } = createState();
  for (let at = 0; at < 100; at++)
    state.salts.set(`${owner.organizationId} ${at}`, new Uint8Array());
  let scans = 0;
  const counting = <Rows extends { rows(): unknown; all(query: never): unknown }>(rows: Rows) => ({
    ...rows,
    rows() {
      scans++;
      return rows.rows();
    },
    all(query: never) {
      scans++;
      return rows.all(query);
    },
  });
  const view = viewOf({ ...state, steps: counting(steps), sessions: counting(sessions) } as never);
  const page = { from: "", limit: 20 };
  expect(view.organizationsOfOldSteps(1, page)).toEqual({ due: [], next: null });
  expect(view.organizationsOfOldSessions(1, page)).toEqual({ due: [], next: null });
  expect(scans).toBe(2);
});
