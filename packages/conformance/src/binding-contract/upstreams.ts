import { gzipSync } from "node:zlib";
import { type ScriptedUpstream, scriptedUpstream, type UpstreamExchange } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Binding } from "./binding.ts";
import { anyErrorOf, bodies, chatPath, type DrivenGateway, drive, endpoints } from "./drive.ts";

/** A hostile provider reaches neither the host's network nor its clients. */
export function describeHostileUpstreams(binding: Binding): void {
  describe("a hostile upstream", () => {
    it("is not followed when it redirects, whatever the status (S7)", async () => {
      const canary = await upstreamThat(() => {});
      const { post, upstream } = await driveUpstream(binding, ({ send }, number) =>
        send(
          `HTTP/1.1 ${redirects[number % redirects.length]} Moved\r\nlocation: ${canary.url}/v1\r\ncontent-length: 0\r\n\r\n`,
        ),
      );
      for (const path of endpoints)
        for (const status of redirects) {
          const answer = await post(path, bodies[path]());
          expect(answer.status, `${path} ${status}`).toBe(502);
          expect(await answer.text()).not.toContain(canary.url);
        }
      expect(upstream.requests).toHaveLength(endpoints.length * redirects.length);
      expect(canary.connections.made).toBe(0);
    });

    it("can't make the gateway decompress its answer (S28)", async () => {
      const bomb = gzipSync(Buffer.alloc(1_000_000));
      const { post } = await driveUpstream(binding, async ({ send }) => {
        await send(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`,
        );
        await send(bomb);
      });
      for (const path of endpoints) {
        const answer = await post(path, bodies[path]());
        expect(answer.status, path).toBe(502);
        expect(Number(answer.headers.get("content-length"))).toBeLessThan(1_000);
      }
    });

    it.each([400, 401, 403, 404, 429, 500])(
      "shows the client none of its error's text, headers and credential, with status %i (S14, S15)",
      async (status) => {
        const { post, key } = await driveUpstream(binding, ({ head, send }) => {
          const error = { message: `canary ${head}`, type: "canary", code: "can ary", param: head };
          const body = JSON.stringify({ error });
          return send(
            `HTTP/1.1 ${status} canary\r\ncontent-type: application/json\r\nx-canary: canary\r\nset-cookie: canary=1\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
          );
        });
        for (const path of endpoints) {
          const answer = await post(path, bodies[path]());
          expect(answer.ok).toBe(false);
          const seen = JSON.stringify([
            answer.statusText,
            ...answer.headers,
            await anyErrorOf(answer),
          ]);
          for (const secret of ["canary", "sk-platform", key.secret])
            expect(seen.toLowerCase()).not.toContain(secret.toLowerCase());
        }
      },
    );
  });

  describe("the URL of an image", () => {
    it("is passed on, and nothing connects to it (S8)", async () => {
      const canary = await upstreamThat(() => {});
      const { port } = new URL(canary.url);
      const urls = hosts.flatMap((host) =>
        users.map((user) => `http://${user}${host}:${port}/metadata?x=y`),
      );
      const { post, upstream } = await driveUpstream(binding, ({ send }) => send(completed));
      const content = urls.map((url) => ({ type: "image_url", image_url: { url } }));
      const messages = [{ role: "user", content }];
      const answer = await post(chatPath, { ...bodies[chatPath](), messages });
      expect(answer.status).toBe(200);
      for (const url of urls) expect(upstream.requests[0]?.body).toContain(`"${url}"`);
      expect(canary.connections.made).toBe(0);
    });
  });
}

const redirects = [300, 301, 302, 303, 307, 308];

/** This machine, in spellings that a filter might not know. */
const hosts = [
  ...["127.0.0.1", "localhost", "127.1", "2130706433", "0177.0.0.1", "0x7f.1", "0x7f000001"],
  ...["0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"],
  ...["[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost.", "LOCALHOST", "127.0.0.1."],
];
const users = ["", "user@", "user:password@", "images.test@"];

const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const completed = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`;

async function upstreamThat(
  script: (exchange: UpstreamExchange, number: number) => Promise<void> | void,
): Promise<ScriptedUpstream> {
  const upstream = await scriptedUpstream(script);
  onTestFinished(() => upstream.close());
  return upstream;
}

/** A gateway behind the binding whose model is at an upstream. */
async function driveUpstream(
  binding: Binding,
  script: (exchange: UpstreamExchange, number: number) => Promise<void> | void,
): Promise<DrivenGateway & { readonly upstream: ScriptedUpstream }> {
  const upstream = await upstreamThat(script);
  const providers = { test: binding.provider(`${upstream.url}/v1`) };
  const driven = await drive(binding, {}, { providers, retries: { max: 0 } });
  return { ...driven, upstream };
}
