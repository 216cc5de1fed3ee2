import { expect, it } from "vitest";
import { conversations, routes } from "../src/endpoints.ts";
import type { Product } from "../src/product.ts";
import { readAnswer } from "../src/read-answer.ts";
import { chunked, finish, openHead, streamHead, text } from "../src/upstream-bytes.ts";
import { chatWire } from "../src/upstream-wires.ts";
import {
  answering,
  endings,
  expectBrokenOff,
  expectWhole,
  startProduct,
  streaming,
  waysOf,
} from "./fixture.ts";

/** Checks that the partial text is kept with the Step, never joins the Session, and unreported usage is estimated. */
async function expectPartial(product: Product, step: number, said: string): Promise<void> {
  const { id, sessionId, organizationId, outcome } = (await product.steps())[step] ?? {};
  expect(outcome).toBe("failed");
  // Embeddings have no Session and keep no text.
  if (sessionId === null) return;
  const contents = await product.store.steps.contents(organizationId ?? null, id ?? "");
  expect(Buffer.from(contents?.reply ?? []).toString()).toContain(`"content":"${said}"`);
  const parts = await product.store.sessions.transcript(organizationId ?? null, sessionId ?? "");
  expect(parts?.every(({ kind }) => kind === "request")).toBe(true);
}

it.each(routes)(
  "F5 a reset or an end in the middle of a body fails the answer, streamed or not (S20): $name",
  async (route) => {
    const { endpoint, wire } = route;
    for (const leave of ["reset", "end"] as const)
      for (const fields of waysOf(route)) {
        const product = await startProduct(
          async (exchange) => {
            await exchange.send(streamHead + chunked(wire.opening(10, 1) + wire.text("Half")));
            exchange[leave]();
          },
          { route },
        );
        const said = expectBrokenOff(await product.ask(fields), endpoint);
        expect(said).toBe(fields.stream ? "Half" : "");
        await expectPartial(product, 0, "Half");
        const [end] = await endings(product);
        const completionTokens = fields.stream === undefined ? 0 : 2;
        expect(end).toMatchObject({ usageBasis: "estimated", usage: { completionTokens } });
        expect(product.upstream.requests).toHaveLength(1);
        await expectWhole(product);
      }
  },
);

it.each(conversations)(
  "F5 the charge is at least the usage reported before a reset: $name",
  async (route) => {
    const { opening, text, usage } = route.wire;
    const product = await startProduct(
      async ({ send, reset }) => {
        await send(streamHead + chunked(opening(10, 1) + text("Half") + usage(33, 44)));
        reset();
      },
      { route },
    );
    await product.ask({ stream: true });
    expect(await endings(product)).toMatchObject([
      { usageBasis: "estimated", usage: { promptTokens: 33, completionTokens: 44 } },
    ]);
    await expectWhole(product);
  },
);

it.each(conversations)(
  "F6 the end of a body without a length or chunks is not the end of an answer (S20): $name",
  async (route) => {
    const { opening, text } = route.wire;
    const product = await startProduct(
      async ({ send, end }) => {
        await send(openHead + opening(10, 1) + text("Half"));
        end();
      },
      { route },
    );
    for (const fields of waysOf(route)) expectBrokenOff(await product.ask(fields), route.endpoint);
    await expectPartial(product, 0, "Half");
    await expectWhole(product);
  },
);

it.each(conversations)(
  "F7 a clean end without a finish reason is not the end of an answer (S20): $name",
  async (route) => {
    const { opening, text, unfinished } = route.wire;
    for (const end of unfinished) {
      const product = await startProduct(streaming(opening(10, 1) + text("Half") + end), { route });
      for (const fields of waysOf(route))
        expectBrokenOff(await product.ask(fields), route.endpoint);
      await expectPartial(product, 0, "Half");
      await expectWhole(product);
    }
  },
);

it.each(conversations)(
  "F8 after its last event an answer is complete at once, and the open socket is closed (S20): $name",
  async (route) => {
    const { opening, text, ending } = route.wire;
    const product = await startProduct(
      answering(streamHead + chunked(opening(3, 1) + text("Hi") + ending(3, 4))),
      { route },
    );
    const { body } = await product.ask({ stream: true });
    const complete = { text: "Hi", error: null, isComplete: true, isEnded: true };
    expect(route.endpoint.read(body)).toEqual(complete);
    expect(await endings(product)).toMatchObject([
      { outcome: "completed", usageBasis: "reported", usage: { completionTokens: 4 } },
    ]);
    product.clock.push(1_000);
    await product.upstream.requests[0]?.closed;
    await expectWhole(product);
  },
);

// Anthropic reports usage with its finish reason.
it.each(conversations.filter(({ wire }) => wire === chatWire))(
  "F8 after the finish reason usage is awaited for two seconds, and then estimated: $name",
  async (route) => {
    const product = await startProduct(answering(streamHead + chunked(text("Hi") + finish)), {
      route,
    });
    const client = await product.post({ stream: true });
    await client.until("Hi");
    expect((await product.steps())[0]?.outcome).toBeNull();
    product.clock.push(2_000);
    const { body } = readAnswer(await client.ended());
    expect(route.endpoint.read(body)).toMatchObject({ isComplete: true, isEnded: true });
    expect(await endings(product)).toMatchObject([
      { outcome: "completed", usageBasis: "estimated" },
    ]);
    product.clock.push(1_000);
    await product.upstream.requests[0]?.closed;
    await expectWhole(product);
  },
);

it.each(conversations)(
  "F17 an error event in the middle of a stream fails the answer and reveals nothing of its text: $name",
  async (route) => {
    const { opening, text, failures, ending } = route.wire;
    for (const event of failures("secret of the upstream")) {
      const product = await startProduct(
        streaming(opening(10, 1) + text("Half") + event + ending(10, 5)),
        { route },
      );
      const answer = await product.ask({ stream: true });
      expectBrokenOff(answer, route.endpoint);
      expect(answer.body).not.toContain("secret of the upstream");
      await expectPartial(product, 0, "Half");
      await expectWhole(product);
    }
  },
);
