import { byIndexes, createFunction, type FunctionParameters } from "./function-text.ts";

export const assignParameters = {
  organization_id: "TEXT",
  user_id: "TEXT",
  key_id: "TEXT",
  source: "TEXT",
  named_session_id: "TEXT",
  named_turn_id: "TEXT",
  considered_session_id: "TEXT",
  chain: "BYTEA",
} as const satisfies FunctionParameters;

/** How many of a key's most recently updated Sessions a request without ids may continue (section 3). */
const candidates = 100;

/** How often a Session that was found may have gone on before it could be locked. */
const mostRounds = 20;

/** The last value of a chain stands for all before it, so comparing the head compares the history. */
const isPrefix = (of: string): string => `${of}.length BETWEEN 1 AND messages
  AND ${of}.head = substr(in_chain, (${of}.length * 32 - 31)::INTEGER, 32)`;

/** One whose first Step alone is all it has, unanswered, is continued only by what goes beyond it. */
const matches = (of: string): string =>
  `${isPrefix(of)} AND (${of}.in_flight = 0 OR ${of}.length < messages)`;

const owned = (of: string): string => `${of}.user_id = in_user_id AND ${of}.key_id = in_key_id`;

const longestFirst = "ORDER BY length DESC, updated DESC LIMIT 1";

/**
 * The assignment rules of section 3 of the specification. A Session that goes on is locked, and found anew if it went
 * on with other messages before that. The lock on a named Session makes requests that name it take turns, so that two
 * equal ones do not both begin a branch.
 */
export function assignSession(name: string, commonLength: string): string {
  return createFunction(name, {
    parameters: assignParameters,
    outputs: assignOutputs,
    body: assignBody(commonLength, "FOR UPDATE"),
  });
}

/** The same rules, for who only asks: nothing is locked, so what was found may be another Session a moment later. */
export function findSession(name: string, commonLength: string): string {
  return createFunction(name, {
    parameters: assignParameters,
    settings: byIndexes,
    outputs: assignOutputs,
    body: assignBody(commonLength, ""),
  });
}

const assignOutputs = {
  assigned: "TEXT",
  found_id: "TEXT",
  found_length: "BIGINT",
  found_classes: "TEXT",
} as const;

function assignBody(commonLength: string, lock: "FOR UPDATE" | ""): string {
  const lockSession = lock === "" ? "" : `${lock} OF s`;
  return `DECLARE
      messages BIGINT := octet_length(in_chain) / 32;
      named_id TEXT; named_length BIGINT; named_fits BOOLEAN; named_classes TEXT;
      of_turn_id TEXT; of_turn_length BIGINT; of_turn_fits BOOLEAN;
      of_turn_classes TEXT;
      candidate TEXT;
    BEGIN
      IF in_named_session_id IS NOT NULL THEN
        SELECT s.id, s.length, ${isPrefix("s")}, s.data_classes
          INTO named_id, named_length, named_fits, named_classes
          FROM sessions s
          WHERE s.organization_id = in_organization_id AND s.id = in_named_session_id
            AND ${owned("s")} ${lockSession};
        IF NOT FOUND THEN
          assigned := 'session_not_found';
          RETURN;
        END IF;
      END IF;
      IF in_named_turn_id IS NOT NULL THEN
        SELECT s.id, s.length, ${isPrefix("s")}, s.data_classes
          INTO of_turn_id, of_turn_length, of_turn_fits, of_turn_classes
          FROM turns t
          JOIN sessions s ON s.organization_id = t.organization_id AND s.id = t.session_id
          WHERE t.organization_id = in_organization_id AND t.id = in_named_turn_id
            AND ${owned("s")} ${lockSession};
        IF NOT FOUND THEN
          assigned := 'turn_not_found';
          RETURN;
        END IF;
      END IF;
      IF coalesce(named_fits, named_id IS NULL AND of_turn_fits) THEN
        assigned := 'continue';
        found_id := coalesce(named_id, of_turn_id);
        found_length := coalesce(named_length, of_turn_length);
        found_classes := coalesce(named_classes, of_turn_classes);
        RETURN;
      END IF;
      FOR round IN 1 .. ${mostRounds} LOOP
        IF named_id IS NOT NULL THEN
          ${findDescendant}
        ELSE
          ${findMatching}
        END IF;
        IF candidate IS NULL THEN
          IF named_id IS NULL THEN
            assigned := 'create';
            found_length := 0;
            found_classes := '[]';
          ELSE
            assigned := 'branch';
            found_id := named_id;
            found_classes := named_classes;
            found_length := ${commonLength}(in_organization_id, named_id, in_chain);
          END IF;
          RETURN;
        END IF;
        SELECT s.id, s.length, s.data_classes INTO found_id, found_length, found_classes
          FROM sessions s
          WHERE s.organization_id = in_organization_id AND s.id = candidate AND ${isPrefix("s")}
            AND (named_id IS NOT NULL OR s.in_flight = 0 OR s.length < messages)
          ${lockSession};
        IF FOUND THEN
          assigned := 'continue';
          RETURN;
        END IF;
      END LOOP;
      RAISE EXCEPTION 'the Session to continue kept going on' USING ERRCODE = '40001';
    END`;
}

const findDescendant = `candidate := (
  WITH RECURSIVE branch (id) AS (
    SELECT s.id FROM sessions s
      WHERE s.organization_id = in_organization_id AND s.branched_from_session_id = named_id
    UNION ALL
    SELECT s.id FROM branch b JOIN sessions s
      ON s.organization_id = in_organization_id AND s.branched_from_session_id = b.id)
  SELECT s.id FROM branch b JOIN sessions s
    ON s.organization_id = in_organization_id AND s.id = b.id
  WHERE ${isPrefix("s")} ${longestFirst.replaceAll(/(length|updated)/g, "s.$1")});`;

const findMatching = `candidate := (
  SELECT c.id FROM (
    SELECT r.id, r.length, r.updated FROM (
      SELECT s.id, s.updated, s.length, s.in_flight, s.head FROM sessions s
        WHERE s.organization_id = in_organization_id AND s.key_id = in_key_id
          AND s.source = in_source
        ORDER BY s.updated DESC LIMIT ${candidates}) AS r
      WHERE ${matches("r")}
    UNION ALL
    SELECT s.id, s.length, s.updated FROM sessions s
      WHERE s.organization_id = in_organization_id AND s.id = in_considered_session_id
        AND ${owned("s")} AND ${matches("s")}) AS c
  ${longestFirst.replaceAll(/(length|updated)/g, "c.$1")});`;

export const commonLengthParameters = {
  organization_id: "TEXT",
  session_id: "TEXT",
  chain: "BYTEA",
} as const satisfies FunctionParameters;

/**
 * How many messages a chain shares with a Session's whole history. A branch begins with what it shares with its
 * origin, so its history is that of several Sessions.
 */
export function commonLength(name: string): string {
  return createFunction(name, {
    parameters: commonLengthParameters,
    outputs: { common: "BIGINT" },
    body: `DECLARE
      history BYTEA := '';
      piece BYTEA;
      at RECORD;
      stop BIGINT;
      next_id TEXT := in_session_id;
      most INTEGER;
    BEGIN
      common := 0;
      WHILE next_id IS NOT NULL AND coalesce(stop, 1) > 0 LOOP
        SELECT s.length, s.common_length, s.branched_from_session_id INTO at FROM sessions s
          WHERE s.organization_id = in_organization_id AND s.id = next_id;
        EXIT WHEN NOT FOUND;
        stop := coalesce(stop, at.length);
        SELECT string_agg(substr(p.chain, 1, (least(p.count, stop - p.position) * 32)::INTEGER), ''
            ORDER BY p.position) INTO piece
          FROM transcript_parts p
          WHERE p.organization_id = in_organization_id AND p.session_id = next_id
            AND p.position >= 0 AND p.position < stop;
        history := coalesce(piece, '') || history;
        stop := least(stop, at.common_length);
        next_id := at.branched_from_session_id;
      END LOOP;
      most := least(octet_length(history), octet_length(in_chain)) / 32;
      WHILE common < most
        AND substr(history, (common * 32 + 1)::INTEGER, 32)
          = substr(in_chain, (common * 32 + 1)::INTEGER, 32) LOOP
        common := common + 1;
      END LOOP;
    END`,
  });
}
