import type { RawClient } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { bodies, conversations, type DrivenGateway, drive, endpoints } from "./drive.ts";

const leavings = [
  ["closes", (client: RawClient) => client.close()],
  ["resets", (client: RawClient) => client.reset()],
] as const;

/** Resolves when the call's signal aborts. A hang-up has to reach the provider within a second. */
async function aborted(driven: DrivenGateway): Promise<void> {
  const signal = driven.provider.calls.at(-1)?.signal;
  if (!signal) throw new Error("the provider was not asked");
  if (signal.aborted) return;
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("no abort within a second")), 1_000);
    signal.addEventListener("abort", () => {
      clearTimeout(late);
      resolve();
    });
  });
}

/** A call that waits in the provider after this many events of its answer. */
async function waiting(
  driven: DrivenGateway,
  path: keyof typeof bodies,
  afterEvents: number | null,
) {
  driven.provider.reply({ text: ["first ", "second"] });
  const held = driven.provider.hold({ afterEvents: afterEvents ?? 0 });
  const client = await driven.rawClient();
  const body = { ...bodies[path](), ...(afterEvents !== null && { stream: true }) };
  client.post(body, { secret: driven.key.secret, path: `${driven.prefix}${path}` });
  await held.reached();
  return client;
}

/** Clients that disconnect. */
export function describeHangUps(binding: Binding): void {
  describe.each(leavings)("a client that %s its connection", (_name, leave) => {
    it.each(conversations)(
      "during the stream of %s is noticed by the provider (S44)",
      async (path) => {
        const driven = await drive(binding);
        const client = await waiting(driven, path, 2);
        await client.until("first ");
        leave(client);
        await aborted(driven);
      },
    );

    it.each(conversations)(
      "before the stream of %s is noticed by the provider (S44)",
      async (path) => {
        const driven = await drive(binding);
        leave(await waiting(driven, path, 0));
        await aborted(driven);
      },
    );

    it.each(endpoints)("before the plain answer of %s is noticed, too (S44)", async (path) => {
      // By default the gateway reads a plain answer to its end, because it needs its cost.
      const driven = await drive(binding, {}, { onDisconnect: "abort" });
      leave(await waiting(driven, path, null));
      await aborted(driven);
    });

    it.each(endpoints)(
      "in the middle of its upload to %s calls no provider, and the next request is answered",
      async (path) => {
        const driven = await drive(binding);
        const client = await driven.rawClient();
        client.send(
          `POST ${driven.prefix}${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n` +
            `authorization: Bearer ${driven.key.secret}\r\ncontent-length: 1000\r\n\r\n{"model":`,
        );
        leave(client);
        expect((await driven.post(path, bodies[path]())).status).toBe(200);
        expect(driven.provider.calls).toHaveLength(1);
      },
    );
  });
}
