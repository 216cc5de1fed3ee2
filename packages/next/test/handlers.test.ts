import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { toNextHandlers } from "../src/index.ts";

describe("the route handlers", () => {
  it("route by the path after the last /v1/, with or without a basePath, and ignore the parameters", async () => {
    const { gateway, chat, provider } = await createTestGateway();
    onTestFinished(() => gateway.close());
    const { POST } = toNextHandlers(gateway);
    provider.reply("Hello from a route", { times: 2 });
    for (const path of ["/ai", "/base/ai"]) {
      const request = new Request(`http://host.test${path}/v1/chat/completions`, chat());
      const parameters = { params: Promise.resolve({ path: ["v1", "chat", "completions"] }) };
      const answer: Response = await Reflect.apply(POST, undefined, [request, parameters]);
      expect(await answer.text()).toContain("Hello from a route");
    }
  });

  it("cancel the provider when Next cancels the stream", async () => {
    const { gateway, chat, provider } = await createTestGateway();
    onTestFinished(() => gateway.close());
    provider.reply({ text: ["first ", "second"] });
    const held = provider.hold({ afterEvents: 2 });
    const answer = await toNextHandlers(gateway).POST(chat({ stream: true }));
    const reader = answer.body?.getReader();
    const reading = (async () => {
      while (!(await reader?.read())?.done);
    })();
    await held.reached();
    const [call] = provider.calls;
    await Promise.all([reader?.cancel(), reading]);
    expect(call?.signal.aborted).toBe(true);
  });

  it("wait longer than Node's longest timer for a client that doesn't read, if asked to", async () => {
    const { gateway, chat, provider } = await createTestGateway();
    onTestFinished(() => gateway.close());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    provider.reply({ text: ["first ", "second"] });
    const { POST } = toNextHandlers(gateway, { writeStall: 3_000_000_000 });
    const reader = (await POST(chat({ stream: true }))).body?.getReader();
    await reader?.read();
    vi.advanceTimersByTime(60_000);
    await expect(reader?.read()).resolves.toMatchObject({ done: false });
    await reader?.cancel();
  });

  it("refuse a body that was already read, with a reason", async () => {
    const { gateway, chat, provider } = await createTestGateway();
    onTestFinished(() => gateway.close());
    const request = chat();
    await request.json();
    const answer = await toNextHandlers(gateway).POST(request);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("The request body was already read.");
    expect(provider.calls).toEqual([]);
  });

  it("reject an invalid gateway and an invalid limit", async () => {
    const { gateway } = await createTestGateway();
    onTestFinished(() => gateway.close());
    expect(() => toNextHandlers(gateway, { writeStall: 0 })).toThrow(
      "`writeStall` must be a whole number of milliseconds, 1 or more.",
    );
    const make = () => Reflect.apply(toNextHandlers, undefined, [{ store: null }]);
    expect(make).toThrow(
      "toNextHandlers(gateway) needs a gateway from createGateway, but got another object.",
    );
  });
});
