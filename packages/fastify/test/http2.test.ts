import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { createTestGateway } from "@tollgate/testing";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { tollgate } from "../src/index.ts";

const hello = { model: "test/tollgate/scripted", messages: [{ role: "user", content: "Hello" }] };

/** Serves an app over HTTP/2 until the test is over. `override` replaces functions of its gateway. */
async function served(override: object = {}) {
  const { gateway, key, provider } = await createTestGateway();
  const app = fastify({ http2: true });
  await app.register(tollgate, { gateway: { ...gateway, ...override } });
  const session = connect(await app.listen({ port: 0, host: "127.0.0.1" }));
  onTestFinished(async () => {
    session.destroy();
    await app.close();
    await gateway.close();
  });
  const ask = (members: object = {}) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/v1/chat/completions",
      "content-type": "application/json",
      authorization: `Bearer ${key.secret}`,
    });
    stream.end(JSON.stringify({ ...hello, ...members }));
    return stream;
  };
  return { app, session, provider, ask };
}

type Stream = ReturnType<ClientHttp2Session["request"]>;

async function textOf(stream: Stream): Promise<string> {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text;
}

describe("a Fastify app over HTTP/2", () => {
  it("answers plainly and in a stream", async () => {
    const { ask } = await served();
    const plain = ask();
    expect((await once(plain, "response"))[0]).toMatchObject({ ":status": 200 });
    expect(JSON.parse(await textOf(plain))).toMatchObject({ object: "chat.completion" });
    expect(await textOf(ask({ stream: true }))).toMatch(/\ndata: \[DONE\]\n\n$/);
  });

  it("tells the provider that the client left", async () => {
    const { ask, provider } = await served();
    const held = provider.hold();
    const stream = ask({ stream: true });
    await held.reached();
    stream.close();
    await expect.poll(() => provider.calls[0]?.signal.aborted).toBe(true);
  });

  it("fails an answer that it can't complete", async () => {
    const { ask } = await served({
      answer: async () => ({
        status: 200,
        headers: {},
        body: {
          byteLength: null,
          leave: () => {},
          start(sink: { write(text: string): unknown; fail(thrown: unknown): void }) {
            sink.write("half an answer");
            setImmediate(() => sink.fail(new Error("broken")));
          },
        },
      }),
    });
    await expect(textOf(ask())).rejects.toThrow("NGHTTP2_INTERNAL_ERROR");
  });

  it("ends an open answer before it closes", async () => {
    const { app, ask, session, provider } = await served();
    const held = provider.hold();
    const stream = ask();
    await held.reached();
    const closing = app.close();
    held.release();
    expect(JSON.parse(await textOf(stream))).toMatchObject({ object: "chat.completion" });
    session.close();
    await closing;
  });
});
