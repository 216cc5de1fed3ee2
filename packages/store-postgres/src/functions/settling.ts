import { leafColumns, responseColumns } from "@tollgate/store-sql";
import {
  byIndexes,
  createFunction,
  type FunctionParameters,
  insertFrom,
  rowsOf,
} from "./function-text.ts";
import { insertPart } from "./insert-part.ts";

export const settleStepParameters = {
  organization_id: "TEXT",
  step_id: "TEXT",
  at: "BIGINT",
  outcome: "TEXT",
  reason: "TEXT",
  finish_reason: "TEXT",
  host: "TEXT",
  attempt: "BIGINT",
  attempt_end: "TEXT",
  usd: "BIGINT",
  tokens: "BIGINT",
  error: "BYTEA",
  error_salt: "BYTEA",
  error_commitment: "BYTEA",
  reasoning: "BYTEA",
  reasoning_salt: "BYTEA",
  reasoning_commitment: "BYTEA",
  reply: "BYTEA",
  reply_salt: "BYTEA",
  reply_commitment: "BYTEA",
  reply_chain: "BYTEA",
  id: "TEXT",
  user_id: "TEXT",
  key_id: "TEXT",
  session_id: "TEXT",
  data_class: "TEXT",
  previous_response_id: "TEXT",
  created_at: "BIGINT",
  expires_at: "BIGINT",
  body: "BYTEA",
  input: "BYTEA",
  messages: "BYTEA",
  inherited: "BYTEA",
  leaf_id: "TEXT",
  leaf_kind: "TEXT",
  leaf_at: "BIGINT",
  meta: "TEXT",
  hash: "BYTEA",
  patience: "TEXT",
} as const satisfies FunctionParameters;

/**
 * Settles Steps: the same as `settleStep` of every store, for as many as came together, in one statement. Counters that
 * many share are locked last, after all else of all Steps.
 */
export function settleSteps(
  count: number,
  names: { readonly settleStep: string; readonly settleHolds: string },
): string {
  const parameters = Object.keys(settleStepParameters).map((name) => `v.${name}`);
  const charged = ["organization_id", "step_id", "spent_usd", "spent_tokens"];
  return `WITH ended AS MATERIALIZED (
      SELECT v.place, v.organization_id, v.step_id, s.*
        FROM ${rowsOf(settleStepParameters, count)}
        CROSS JOIN LATERAL ${names.settleStep}(${parameters.join(", ")}) AS s),
    charged AS MATERIALIZED (
      SELECT CASE WHEN count(*) > 0
        THEN ${names.settleHolds}(${charged.map((name) => `array_agg(e.${name})`).join(", ")}) END AS count
      FROM ended e WHERE e.holds > 0)
    SELECT e.result, e.earlier_outcome FROM ended e CROSS JOIN charged ORDER BY e.place`;
}

/** Settles a Step, all but its holds. */
export function settleStep(name: string, { sequence }: { readonly sequence: string }): string {
  return createFunction(name, {
    parameters: settleStepParameters,
    settings: byIndexes,
    outputs: {
      result: "TEXT",
      earlier_outcome: "TEXT",
      holds: "BIGINT",
      spent_usd: "BIGINT",
      spent_tokens: "BIGINT",
    },
    body: `DECLARE
      step RECORD; s RECORD; built_on TEXT; joins BOOLEAN := FALSE;
    BEGIN
      -- Who settles Steps together must not make one wait for what another of them has.
      PERFORM set_config('lock_timeout', in_patience, TRUE);
      SELECT t.outcome, t.user_id, t.key_id, t.session_id, t.process_id, t.head, t.length,
          t.opened_session, t.holds, t.attempt, t.carried_usd, t.carried_tokens
        INTO step FROM steps t
        WHERE t.organization_id = in_organization_id AND t.id = in_step_id FOR UPDATE;
      IF NOT FOUND THEN
        ${refuse("'step_not_found'")}
      END IF;
      IF step.outcome <> 'open' THEN
        earlier_outcome := step.outcome;
        ${refuse("'settled_before'")}
      END IF;
      IF step.attempt <> in_attempt THEN
        ${refuse("'other_attempt'")}
      END IF;
      IF in_id IS NOT NULL AND (in_user_id <> step.user_id OR in_key_id <> step.key_id) THEN
        ${refuse("'foreign_response'")}
      END IF;
      SELECT x.head, x.length, x.in_flight INTO s FROM sessions x
        WHERE x.organization_id = in_organization_id AND x.id = step.session_id FOR UPDATE;
      ${storeResponse}
      ${appendReply(sequence)}
      IF in_reasoning_salt IS NOT NULL THEN
        ${insertPart({
          session: "step.session_id",
          position: "-3",
          step: "in_step_id",
          kind: "'reasoning'",
          count: "0",
          chain: "''",
          content: "in_reasoning",
          salt: "in_reasoning_salt",
          commitment: "in_reasoning_commitment",
        })};
      END IF;
      IF in_error_salt IS NOT NULL THEN
        INSERT INTO attempt_errors (organization_id, step_id, attempt, session_id, content, salt,
            commitment)
          VALUES (in_organization_id, in_step_id, in_attempt, step.session_id, in_error,
            in_error_salt, in_error_commitment);
      END IF;
      UPDATE steps SET settled_at = in_at, outcome = in_outcome, reason = in_reason,
          finish_reason = in_finish_reason, host = in_host, attempt_end = in_attempt_end,
          reply_head = CASE WHEN octet_length(in_reply_chain) > 0
            THEN substr(in_reply_chain, octet_length(in_reply_chain) - 31, 32) END
        WHERE organization_id = in_organization_id AND id = in_step_id;
      DELETE FROM open_steps WHERE process_id = step.process_id AND step_id = in_step_id
        AND organization_id = in_organization_id;
      ${writeLeaf(sequence)};
      result := 'settled';
      holds := step.holds;
      spent_usd := step.carried_usd + in_usd;
      spent_tokens := step.carried_tokens + in_tokens;
    END`,
  });
}

function refuse(result: string): string {
  return `result := ${result};
        RETURN;`;
}

/** Linked to the response it continues, or with the messages before it if that is gone. Nothing is written before. */
const storeResponse = `IF in_id IS NOT NULL THEN
    IF in_previous_response_id IS NOT NULL THEN
      -- One that is continued cannot go before the one that continues it stands.
      SELECT r.id INTO built_on FROM responses r
        WHERE r.organization_id = in_organization_id AND r.id = in_previous_response_id
          AND r.user_id = in_user_id AND r.key_id = in_key_id FOR KEY SHARE;
    END IF;
    IF built_on IS NULL AND in_inherited IS NULL THEN
      ${refuse("'more'")}
    END IF;
    ${insertFrom("responses", [...responseColumns, "built_on", "inherited"], {
      built_on: "built_on",
      inherited: "CASE WHEN built_on IS NULL THEN in_inherited ELSE '[]'::BYTEA END",
    })} ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      ${refuse("'response_taken'")}
    END IF;
  END IF;`;

/** A reply becomes part of the Session unless something else took its place while it was under way. */
function appendReply(sequence: string): string {
  return `IF in_reply_salt IS NOT NULL THEN
      joins := in_outcome = 'completed' AND octet_length(in_reply_chain) > 0
        AND s.length = step.length AND s.head = step.head;
      ${insertPart({
        session: "step.session_id",
        position: "CASE WHEN joins THEN step.length ELSE -1 END",
        step: "in_step_id",
        kind: "'reply'",
        count: "octet_length(in_reply_chain) / 32",
        chain: "in_reply_chain",
        content: "in_reply",
        salt: "in_reply_salt",
        commitment: "in_reply_commitment",
      })};
    END IF;
    UPDATE sessions SET updated = nextval('${sequence}'), updated_at = in_at,
        head = CASE WHEN joins THEN substr(in_reply_chain, octet_length(in_reply_chain) - 31, 32)
          ELSE head END,
        length = CASE WHEN joins THEN length + octet_length(in_reply_chain) / 32 ELSE length END,
        in_flight = CASE WHEN in_flight = 1 AND step.opened_session = 0 AND NOT joins
          THEN 1 ELSE 0 END
      WHERE organization_id = in_organization_id AND id = step.session_id;`;
}

function writeLeaf(sequence: string): string {
  return insertFrom("leaves", leafColumns, {
    sequence: `nextval('${sequence}')`,
    id: "in_leaf_id",
    kind: "in_leaf_kind",
    at: "in_leaf_at",
  });
}
