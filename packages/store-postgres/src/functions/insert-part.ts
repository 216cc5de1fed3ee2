/** An INSERT of a part of a transcript, each column an expression. */
export function insertPart(part: {
  readonly session: string;
  readonly position: string;
  readonly step: string;
  readonly kind: string;
  readonly count: string;
  readonly chain: string;
  readonly content: string;
  readonly salt: string;
  readonly commitment: string;
}): string {
  return `INSERT INTO transcript_parts (organization_id, session_id, position, step_id, kind, count,
      chain, content, salt, commitment)
    VALUES (in_organization_id, ${part.session}, ${part.position}, ${part.step}, ${part.kind},
      ${part.count}, ${part.chain}, ${part.content}, ${part.salt}, ${part.commitment})`;
}
