import { stepReadColumns } from "../rows/step-row.ts";

/** Statements on processes' leases and on the Steps that no process will settle. */
export const leaseStatements = {
  /** A renewal that arrives after a later one changes nothing. */
  renew: `INSERT INTO processes (id, renewal, lapses_at)
    VALUES (:process_id, :renewal, :lapses_at)
    ON CONFLICT (id) DO UPDATE SET renewal = excluded.renewal, lapses_at = excluded.lapses_at
    WHERE processes.renewal <= excluded.renewal`,
  /** Of a lapsed process only its open Steps matter, and those are found without its row as well. */
  forget: `DELETE FROM processes WHERE lapses_at <= :at AND id <> :process_id
    AND NOT EXISTS (SELECT 1 FROM open_steps WHERE process_id = processes.id)`,
  lapsed: `SELECT ${stepReadColumns.map((column) => `t.${column}`).join(", ")},
      t.sequence, o.output_tokens
    FROM open_steps o LEFT JOIN processes p ON p.id = o.process_id
      JOIN steps t ON t.organization_id = o.organization_id AND t.id = o.step_id
    WHERE t.sequence > :after AND (p.id IS NULL OR p.lapses_at <= :at OR p.renewal > o.renewal)
    ORDER BY t.sequence LIMIT :limit`,
} as const;
