import { decisionColumns, leafColumns, sessionColumns, stepColumns } from "@tollgate/store-sql";
import { assignParameters } from "./assigning.ts";
import {
  byIndexes,
  createFunction,
  type FunctionParameters,
  insertFrom,
  rowsOf,
} from "./function-text.ts";
import { firstHoldThatDoesNotFit, holdParameters } from "./holding.ts";
import { insertPart } from "./insert-part.ts";

export const openStepParameters = {
  ...assignParameters,
  id: "TEXT",
  endpoint: "TEXT",
  stream: "BIGINT",
  requested_model: "TEXT",
  data_class: "TEXT",
  step_number: "BIGINT",
  dropped_fields: "TEXT",
  metadata: "TEXT",
  process_id: "TEXT",
  renewal: "BIGINT",
  opened_at: "BIGINT",
  holds: "BIGINT",
  gateway: "TEXT",
  vendor: "TEXT",
  model: "TEXT",
  connection: "TEXT",
  attempt: "BIGINT",
  attempt_start: "TEXT",
  new_session_id: "TEXT",
  new_turn_id: "TEXT",
  last_user_message: "BIGINT",
  messages: "BYTEA",
  offsets: "BIGINT[]",
  first_message: "BIGINT",
  keeps_content: "BIGINT",
  content_salt: "BYTEA",
  expects_session: "BIGINT",
  expected_session_id: "TEXT",
  expected_classes: "TEXT",
  instructions: "BYTEA",
  instructions_salt: "BYTEA",
  instructions_commitment: "BYTEA",
  decision_id: "TEXT",
  effect: "TEXT",
  decided_at: "BIGINT",
  verdict: "TEXT",
  facts: "TEXT",
  policy_version: "TEXT",
  first_decision_id: "TEXT",
  key_version: "BIGINT",
  budgets_version: "BIGINT",
  leaf_id: "TEXT",
  leaf_kind: "TEXT",
  leaf_at: "BIGINT",
  leaf_before: "TEXT",
  leaf_after: "TEXT",
  ...holdParameters,
  patience: "TEXT",
} as const satisfies FunctionParameters;

/** The other functions that opening a Step is made of, by name. */
export interface OpeningParts {
  readonly assignSession: string;
  readonly sequence: string;
}

const messages = "(octet_length(in_chain) / 32)";
const head = `substr(in_chain, octet_length(in_chain) - 31, 32)`;

/**
 * Opens Steps: the same as `openStep` of every store, for as many as came together, in one statement. Counters that many
 * share are locked last, after all else of all Steps, so that they are locked for as short as can be.
 */
export function openSteps(
  count: number,
  names: { readonly openStep: string; readonly takeHolds: string },
): string {
  const parameters = Object.keys(openStepParameters).map((name) => `v.${name}`);
  const holds = Object.keys(holdParameters).map((name) => name.replace("hold_", ""));
  const arrays = Object.keys(holdParameters).map((name) => `o.${name}`);
  const taken = ["o.organization_id", "o.id", "o.attempt", ...holds.map((name) => `h.${name}`)];
  return `WITH opened AS MATERIALIZED (
      SELECT v.place, v.organization_id, v.id, v.attempt, ${arrays.map((name) => name.replace("o.", "v.")).join(", ")},
        s.* FROM ${rowsOf(openStepParameters, count)}
        CROSS JOIN LATERAL ${names.openStep}(${parameters.join(", ")}) AS s),
    held AS MATERIALIZED (
      SELECT CASE WHEN count(*) > 0
        THEN ${names.takeHolds}(${taken.map((name) => `array_agg(${name})`).join(", ")}) END AS count
      FROM opened o CROSS JOIN LATERAL unnest(${arrays.join(", ")}) AS h (${holds.join(", ")})
      WHERE o.is_new = 1)
    SELECT o.result, o.to_session_id, o.to_turn_id, o.branched_from, o.refused_hold,
        o.hold_left
      FROM opened o CROSS JOIN held ORDER BY o.place`;
}

/** Opens a Step, all but its holds. */
export function openStep(name: string, parts: OpeningParts): string {
  return createFunction(name, {
    parameters: openStepParameters,
    settings: byIndexes,
    outputs: {
      result: "TEXT",
      is_new: "BIGINT",
      to_session_id: "TEXT",
      to_turn_id: "TEXT",
      branched_from: "TEXT",
      refused_hold: "BIGINT",
      hold_left: "BIGINT",
    },
    body: `DECLARE
      known RECORD; key RECORD; a RECORD; continued RECORD;
      begins_turn BOOLEAN; number BIGINT;
      content BYTEA; content_commitment BYTEA; meta TEXT;
    BEGIN
      -- Who opens Steps together must not make one wait for what another of them has.
      PERFORM set_config('lock_timeout', in_patience, TRUE);
      SELECT t.session_id, t.turn_id, t.branched_from_session_id INTO known FROM steps t
        WHERE t.organization_id = in_organization_id AND t.id = in_id;
      IF FOUND THEN
        result := 'opened';
        to_session_id := known.session_id;
        to_turn_id := known.turn_id;
        branched_from := known.branched_from_session_id;
        RETURN;
      END IF;
      SELECT k.user_id, k.label, k.expires_at, k.revoked_at, k.version INTO key FROM api_keys k
        WHERE k.organization_id = in_organization_id AND k.id = in_key_id
          AND k.user_id = in_user_id AND (k.revoked_at IS NULL OR in_opened_at < k.revoked_at)
          AND (k.expires_at IS NULL OR in_opened_at < k.expires_at);
      IF NOT FOUND THEN
        ${refuse("'invalid_api_key'")}
      END IF;
      IF key.version <> in_key_version THEN
        ${refuse("'key_changed'")}
      END IF;
      SELECT * INTO a FROM ${parts.assignSession}(${inputs(assignParameters)});
      IF a.assigned IN ('session_not_found', 'turn_not_found') THEN
        ${refuse("a.assigned")}
      END IF;
      IF in_expects_session = 1 AND (a.found_id IS DISTINCT FROM in_expected_session_id
          OR a.found_classes::JSONB <> in_expected_classes::JSONB) THEN
        ${refuse("'session_changed'")}
      END IF;
      IF (SELECT budgets_version FROM store_state WHERE id = 1) <> in_budgets_version THEN
        ${refuse("'budgets_changed'")}
      END IF;
      IF a.found_length < in_first_message THEN
        ${refuse("'more'")}
      END IF;
      IF cardinality(in_hold_budget_ids) > 0 THEN
        ${firstHoldThatDoesNotFit}
        IF refused_hold > 0 THEN
          ${refuse("'budget_exceeded'")}
        END IF;
      END IF;
      ${joinSession(parts.sequence)}
      ${appendMessages}
      ${writeStep(parts.sequence)}
      result := 'opened';
      is_new := 1;
    END`,
  });
}

function refuse(code: string): string {
  return `result := ${code};
        RETURN;`;
}

function inputs(parameters: FunctionParameters): string {
  return Object.keys(parameters)
    .map((parameter) => `in_${parameter}`)
    .join(", ");
}

/** A JSON array of data classes with that of the Step in it. */
function withClass(classes: string): string {
  return `CASE WHEN jsonb_exists(${classes}::JSONB, in_data_class) THEN ${classes}
    ELSE (${classes}::JSONB || to_jsonb(in_data_class))::TEXT END`;
}

/** Makes or extends the Session, and begins a Turn where the request has a new user message. */
function joinSession(sequence: string): string {
  const created = insertFrom("sessions", sessionColumns, {
    id: "to_session_id",
    head,
    length: messages,
    created_at: "in_opened_at",
    updated_at: "in_opened_at",
    updated: `nextval('${sequence}')`,
    in_flight: "1",
    turn_id: "to_turn_id",
    branched_from_session_id: "branched_from",
    common_length: "a.found_length",
    data_classes: withClass("a.found_classes"),
  });
  return `IF a.assigned = 'continue' THEN
      SELECT s.id, s.turn_id, s.in_flight INTO continued FROM sessions s
        WHERE s.organization_id = in_organization_id AND s.id = a.found_id;
      begins_turn := in_last_user_message > a.found_length;
      to_session_id := a.found_id;
      to_turn_id := CASE WHEN begins_turn THEN in_new_turn_id
        ELSE coalesce(in_named_turn_id, continued.turn_id) END;
      UPDATE sessions SET head = ${head}, length = ${messages},
          updated = nextval('${sequence}'), updated_at = in_opened_at,
          in_flight = CASE WHEN in_flight = 1 AND a.found_length = ${messages} THEN 1 ELSE 0 END,
          turn_id = CASE WHEN begins_turn THEN to_turn_id ELSE turn_id END,
          data_classes = ${withClass("data_classes")}
        WHERE organization_id = in_organization_id AND id = to_session_id;
    ELSE
      begins_turn := TRUE;
      to_session_id := in_new_session_id;
      to_turn_id := in_new_turn_id;
      branched_from := CASE a.assigned WHEN 'branch' THEN a.found_id END;
      ${created} ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN
        -- Taken by this very Step, which an earlier call opened meanwhile, or by another.
        IF EXISTS (SELECT FROM steps t WHERE t.organization_id = in_organization_id AND t.id = in_id)
        THEN
          RAISE EXCEPTION 'the Step was opened meanwhile' USING ERRCODE = '40001';
        END IF;
        RAISE EXCEPTION 'the id for a new Session is taken' USING ERRCODE = 'TG002';
      END IF;
    END IF;
    IF begins_turn THEN
      INSERT INTO turns (organization_id, id, session_id)
        VALUES (in_organization_id, to_turn_id, to_session_id) ON CONFLICT DO NOTHING;
    END IF;`;
}

/** Appends what the Session does not have yet, and the instructions beside it. */
const appendMessages = `IF ${messages} > a.found_length THEN
    content := '\\x5b'::BYTEA || substr(in_messages,
      (in_offsets[a.found_length - in_first_message + 1] + 1)::INTEGER) || '\\x5d'::BYTEA;
    content_commitment := sha256('\\x02'::BYTEA || in_content_salt || content);
    ${insertPart({
      session: "to_session_id",
      position: "a.found_length",
      step: "in_id",
      kind: "'request'",
      count: `${messages} - a.found_length`,
      chain: "substr(in_chain, (a.found_length * 32 + 1)::INTEGER)",
      content: "CASE in_keeps_content WHEN 1 THEN content END",
      salt: "in_content_salt",
      commitment: "content_commitment",
    })};
  END IF;
  IF in_instructions_salt IS NOT NULL THEN
    ${insertPart({
      session: "to_session_id",
      position: "-2",
      step: "in_id",
      kind: "'instructions'",
      count: "0",
      chain: "''",
      content: "in_instructions",
      salt: "in_instructions_salt",
      commitment: "in_instructions_commitment",
    })};
  END IF;`;

/** The leaf is filled with canonical JSON, byte for byte as every store fills it. */
function writeStep(sequence: string): string {
  const step = insertFrom("steps", stepColumns, {
    key_label: "key.label",
    session_id: "to_session_id",
    turn_id: "to_turn_id",
    outcome: "'open'",
    head,
    length: messages,
    opened_session: "CASE a.assigned WHEN 'continue' THEN 0 ELSE 1 END",
    branched_from_session_id: "branched_from",
    carried_usd: "0",
    carried_tokens: "0",
    sequence: "number",
  });
  const decision = insertFrom("decisions", decisionColumns, {
    id: "in_decision_id",
    at: "in_decided_at",
    refused_by: "NULL",
    refusal: "NULL",
    sequence: "number",
  });
  const leaf = insertFrom("leaves", leafColumns, {
    sequence: `nextval('${sequence}')`,
    id: "in_leaf_id",
    kind: "in_leaf_kind",
    at: "in_leaf_at",
    meta: "meta",
    hash: "sha256('\\x00'::BYTEA || convert_to(meta, 'UTF8'))",
  });
  return `number := nextval('${sequence}');
    ${step};
    INSERT INTO open_steps (process_id, step_id, organization_id, renewal, output_tokens)
      VALUES (in_process_id, in_id, in_organization_id, in_renewal, NULL);
    ${decision} ON CONFLICT DO NOTHING;
    meta := in_leaf_before
      || '{"branchedFromSessionId":' || coalesce(to_json(branched_from)::TEXT, 'null')
      || ',"commonLength":' || a.found_length
      || ',"contentCommitment":' || coalesce('"' || encode(content_commitment, 'hex') || '"', 'null')
      || ',"sessionId":' || to_json(to_session_id)::TEXT
      || ',"turnId":' || to_json(to_turn_id)::TEXT || '}' || in_leaf_after;
    ${leaf};`;
}
