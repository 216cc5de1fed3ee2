import type { SessionDump, StoreDump } from "./dump.ts";

/** Checks that every Session's transcript is complete: no gap, no overlap, and the recorded length. */
export function checkTranscripts({ sessions }: StoreDump): readonly string[] {
  return sessions.flatMap(sessionProblems);
}

function sessionProblems({ session, parts }: SessionDump): readonly string[] {
  const problems: string[] = [];
  let length = 0;
  for (const { stepId, kind, from, count, content } of parts) {
    const at = `Session ${session.id}, ${kind} of Step ${stepId}`;
    if (from !== length) problems.push(`${at}: it is at ${from}, not at ${length}`);
    const written = content === null ? count : messagesIn(content);
    if (written !== count) problems.push(`${at}: ${written} messages, not ${count}`);
    length += count;
  }
  if (length !== session.length)
    problems.push(`Session ${session.id}: its length is ${session.length}, not ${length}`);
  return problems;
}

function messagesIn(content: Uint8Array): number {
  try {
    const messages: unknown = JSON.parse(Buffer.from(content).toString());
    return Array.isArray(messages) ? messages.length : -1;
  } catch {
    return -1;
  }
}
