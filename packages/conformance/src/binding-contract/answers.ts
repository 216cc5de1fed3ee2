import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import {
  bodies,
  chatPath,
  closing,
  conversations,
  drive,
  embeddingsPath,
  endpoints,
  messagesPath,
  responsesPath,
} from "./drive.ts";
import { describeOpenAi } from "./openai-loop.ts";

const text = "é".repeat(100_000);
const long = { reply: text, received: text } as const;
const vector = Array.from({ length: 20_000 }, (_, at) => at + 0.5);

/** A long answer of each endpoint, and a part of it that the client receives. */
const longAnswers = {
  [chatPath]: long,
  [responsesPath]: long,
  [messagesPath]: long,
  [embeddingsPath]: { reply: { embeddings: [vector] }, received: vector.join(",") },
} as const;

/** Answers and their headers, plain and streamed. */
export function describeAnswers(binding: Binding): void {
  describe("an answer", () => {
    it.each(endpoints)("of %s has the gateway's headers and its length", async (path) => {
      const { post, provider } = await drive(binding);
      const { reply, received } = longAnswers[path];
      provider.reply(reply);
      const answer = await post(path, bodies[path](), {
        "x-service-data-sensitivity": "D2_CONFIDENTIAL",
      });
      expect(answer.status).toBe(200);
      const { headers } = answer;
      expect(headers.get("content-type")).toBe("application/json");
      expect(headers.get("x-service-data-sensitivity")).toBe("D2_CONFIDENTIAL");
      expect(headers.get("x-service-policy-decision-id")).toMatch(/./);
      expect(headers.get("x-service-model")).toMatch(/^[^/]+\/[^/]+\/./);
      expect(headers.get("x-request-id")).toMatch(/./);
      expect(await answer.text()).toContain(received);
    });

    it.each(conversations)("of %s arrives as a stream, event by event", async (path) => {
      const driven = await drive(binding);
      driven.provider.reply({ text: ["first ", "second ", "third"] });
      // The first event of an answer reports its start. The second is the first piece of text.
      const held = driven.provider.hold({ afterEvents: 2 });
      const client = await driven.rawClient();
      const { secret } = driven.key;
      const body = { ...bodies[path](), stream: true };
      client.post(body, { secret, path: `${driven.prefix}${path}` });
      await client.until("first ");
      await held.reached();
      expect(client.received()).toMatch(/content-type: text\/event-stream/i);
      expect(client.received()).not.toContain("second ");
      held.release();
      await client.until(closing[path]);
      expect(client.received().indexOf("second ")).toBeLessThan(client.received().indexOf("third"));
    });

    it.each(conversations)("of %s follows another on the same connection", async (path) => {
      const driven = await drive(binding);
      const client = await driven.rawClient();
      const request = { secret: driven.key.secret, path: `${driven.prefix}${path}` };
      for (const word of ["one", "two", "three"]) {
        driven.provider.reply(`answer ${word}`);
        client.post({ ...bodies[path](), stream: word === "two" }, request);
        await client.until(`answer ${word}`);
        if (word === "two") await client.until("\r\n0\r\n\r\n");
      }
    });

    it("does not change the headers of other answers", async () => {
      const { post } = await drive(binding);
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => endpoints.map((path) => post(path, bodies[path]()))).flat(),
      );
      const ids = answers.map(({ headers }) => headers.get("x-request-id"));
      expect(new Set(ids).size).toBe(20);
    });
  });

  describeOpenAi(binding);
}
