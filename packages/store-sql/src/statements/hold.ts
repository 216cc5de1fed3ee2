import { holdRows } from "../rows/budget-row.ts";
import { insertInto } from "../statement.ts";
import { columnsOf } from "../tables.ts";

const counterColumns = columnsOf("budget_counters");

const ofCounter = "budget_id = :budget_id AND subject = :subject AND period_start = :period_start";
const ofStep = "organization_id = :organization_id AND step_id = :step_id";

/** Statements on counters and their holds. */
export const holdStatements = {
  counter: `SELECT ${counterColumns.join(", ")} FROM budget_counters WHERE ${ofCounter}`,
  setCounter: `${insertInto("budget_counters", counterColumns)}
    ON CONFLICT (budget_id, subject, period_start)
    DO UPDATE SET settled = excluded.settled, held = excluded.held`,
  holds: `SELECT ${holdRows.columns.join(", ")} FROM holds WHERE ${ofStep}`,
} as const;
