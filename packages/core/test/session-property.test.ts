import { createTestGateway, type TestGateway } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createNaiveSessions, type SentMessage } from "./naive-sessions.ts";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

/** One request of a random tree: a known history, cut and extended, in any spelling, with or without ids. */
interface Send {
  readonly key: number;
  readonly from: number;
  readonly drop: number;
  readonly add: readonly SentMessage[];
  readonly ids: "omitted" | "session" | "turn" | "both";
  readonly of: number;
  readonly spelling: number;
  readonly repeats: boolean;
  readonly reply: "text" | "tool" | "failed";
}

const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
const toolCall: SentMessage = { role: "assistant", content: null, tool_calls: [call] };

// Few different texts, so histories often match.
const message = fc.constantFrom<SentMessage>(
  { role: "user", content: "a" },
  { role: "user", content: "b" },
  { role: "assistant", content: "OK" },
  { role: "tool", tool_call_id: "call_1", content: "a" },
  toolCall,
);

const send: fc.Arbitrary<Send> = fc.record({
  key: fc.nat(1),
  from: fc.nat(1_000),
  drop: fc.nat(2),
  add: fc.array(message, { maxLength: 3 }),
  ids: fc.constantFrom("omitted", "omitted", "session", "turn", "both"),
  of: fc.nat(1_000),
  spelling: fc.nat(2),
  repeats: fc.boolean(),
  reply: fc.constantFrom("text", "tool", "failed"),
});

/** The same messages as clients write them: tool calls with content "", null or none, assistant rows twice. */
function spelled(messages: readonly SentMessage[], { spelling, repeats }: Send) {
  const contents = [{ content: "" }, { content: null }, {}];
  return messages.flatMap((sent) => {
    const { content: _content, ...bare } = sent;
    const written = sent.tool_calls ? { ...bare, ...contents[spelling] } : sent;
    return repeats && sent.role === "assistant" ? [written, written] : [written];
  });
}

const replies = { text: { role: "assistant", content: "OK" }, tool: toolCall, failed: null };
const scripts = {
  text: "OK",
  tool: { toolCalls: [{ name: "f", arguments: "{}" }] },
  failed: { finishReason: null },
};

const pick = <Item>(items: readonly Item[], at: number): Item | undefined =>
  items[at % Math.max(1, items.length)];

interface Side {
  readonly send: (each: Send) => Promise<void>;
}

/** A key's conversation with the gateway, next to the reference. */
function createSide(
  test: TestGateway,
  { key, chat }: Awaited<ReturnType<TestGateway["createKey"]>>,
): Side {
  const reference = createNaiveSessions();
  const histories: (readonly SentMessage[])[] = [[]];
  const sent: { readonly sessionId: string; readonly turnId: string }[] = [];
  const { organizationId } = key;

  async function latestStep() {
    const { data } = await test.gateway.steps.list({ organizationId, key: key.id }, { limit: 1 });
    if (!data[0]) throw new Error("The request left no Step.");
    const { sessionId, turnId, stepNumber } = data[0];
    if (sessionId === null || turnId === null) throw new Error("The Step has no Session.");
    const session = await test.gateway.sessions.get({ organizationId, id: sessionId });
    return { sessionId, turnId, stepNumber, session };
  }

  return {
    async send(each) {
      const base = pick(histories, each.from) ?? [];
      const messages = [...base.slice(0, Math.max(0, base.length - each.drop)), ...each.add];
      if (messages.length === 0) return;
      const named = pick(sent, each.of);
      const sessionId = /session|both/.test(each.ids) ? (named?.sessionId ?? null) : null;
      const turnId = /turn|both/.test(each.ids) ? (named?.turnId ?? null) : null;
      const reply = replies[each.reply];
      const expected = reference.expected({ messages, sessionId, turnId, reply });

      test.provider.reply(scripts[each.reply]);
      const rows = spelled(messages, each);
      const answer = await test.gateway.fetch(
        chat({ messages: rows, session_id: sessionId, turn_id: turnId }),
      );
      const step = await latestStep();
      expect({
        sessionId: sent.some((other) => other.sessionId === step.sessionId) ? step.sessionId : null,
        turnId: sent.some((other) => other.turnId === step.turnId) ? step.turnId : null,
        branchedFromSessionId: step.session.branchedFromSessionId,
        length: step.session.length,
      }).toEqual(expected);
      expect(step.stepNumber).toBe(assistantsAfterLastUser(rows));
      if (reply) {
        const { session_id, turn_id } = await completionOf(answer);
        expect([session_id, turn_id]).toEqual([step.sessionId, step.turnId]);
      } else expect(answer.status).toBe(502);

      reference.adopt(step);
      sent.push(step);
      histories.push(messages, ...(reply ? [[...messages, reply]] : []));
    },
  };
}

describe.each(stores)("session assignment on %s", (_, open) => {
  it("equals a naive reference on random trees of messages (SE1 to SE7)", async () => {
    const test = await createTestGateway({ store: open(), retries: { max: 0 } });
    let runs = 0;
    const property = fc.asyncProperty(
      fc.array(send, { minLength: 4, maxLength: 25 }),
      async (sends) => {
        // Each run has its own organization, so one gateway can serve all runs.
        const organizationId = `random-${++runs}`;
        const keys = [0, 1].map(() => test.createKey({ organizationId }));
        const sides = (await Promise.all(keys)).map((key) => createSide(test, key));
        for (const each of sends) await sides[each.key]?.send(each);
      },
    );
    await fc.assert(property, { numRuns: 100 });
  }, 60_000);
});

function assistantsAfterLastUser(rows: readonly { readonly role: string }[]): number {
  const after = rows.slice(rows.findLastIndex(({ role }) => role === "user") + 1);
  return after.filter(({ role }) => role === "assistant").length;
}
