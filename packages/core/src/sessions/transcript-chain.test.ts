import { expect, it } from "vitest";
import type { Message } from "../domain/message.ts";
import { chainOf, extendByReply, stepNumberOf } from "./transcript-chain.ts";

const salt = Buffer.alloc(32, 1);
const user = (content: string): Message => ({ role: "user", content });
const answer = (content: string): Message => ({ role: "assistant", content });
/** The chain values of messages after a short one, computed without pauses. */
async function valuesOf([first, ...others]: readonly Message[]): Promise<Buffer> {
  const chain = await chainOf(first ? [first] : [], salt);
  return Buffer.concat([chain.values, extendByReply(chain, others, salt).values]);
}

it("the chain of short messages is made at once", async () => {
  const messages = [user("a"), answer("b"), answer("b"), user("c"), answer("c")];
  const chain = chainOf(messages, salt);
  expect(chain).not.toBeInstanceOf(Promise);
  expect(await chain).toMatchObject({ places: [0, 1, 1, 2, 3], lastUserMessage: 3 });
  expect((await chain).messages.slice(2)).toEqual(
    [user("c"), answer("c")].map((one) => JSON.stringify(one)),
  );
});

it.each([
  ["many messages", Array.from({ length: 7 }, (_, at) => user(`${at}`.repeat(at * 50_000 + 1)))],
  ["a very large message", [user("a"), user("b".repeat(1_100_000)), answer("c")]],
  // Escaped, it is large only as a text.
  ["a large text", [user("a"), user("\u0001".repeat(200_000)), answer("c")]],
])("making the chain of %s pauses, and the result is the same", async (_, messages) => {
  const chain = chainOf(messages, salt);
  expect(chain).toBeInstanceOf(Promise);
  const { values, messages: texts, places } = await chain;
  expect(values).toEqual(await valuesOf(messages));
  expect(texts.slice(0)).toEqual(messages.map((message) => JSON.stringify(message)));
  expect(places).toEqual([...messages.keys()]);
});

it("a reply adds no message that repeats the one before", async () => {
  const chain = await chainOf([user("a"), answer("b")], salt);
  const { messages, values } = extendByReply(
    chain,
    [answer("b"), answer("c"), answer("c"), answer("b")],
    salt,
  );
  expect(messages).toEqual([answer("c"), answer("b")]);
  expect(values).toHaveLength(64);
});

it("the Step number counts assistant messages after the last user message", () => {
  const tool: Message = { role: "tool", tool_call_id: "call_0", content: "t" };
  const loop = [user("a"), answer("b"), tool, answer("c")];
  expect([[], loop, [...loop, user("d")], loop.slice(1)].map(stepNumberOf)).toEqual([0, 2, 0, 2]);
});
