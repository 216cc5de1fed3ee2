import { generateKeyPairSync, sign, verify } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import {
  createGateway,
  type EvidenceSigner,
  ed25519Signer,
  everyOrganization,
  type Gateway,
  type LogRecord,
  type VerifyOptions,
} from "@tollgate/core";
import { type Checkpoint, leafHash, type SealedLeaf, type Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { countingIds, createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";

const organizationId = "organization-1";
const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const signer = ed25519Signer({ name: "tollgate.example", privateKey: pem });

function sealing(options: TestGatewayOptions = {}) {
  return createTestGateway({ evidence: { signer }, ...options });
}

async function verifyAll(
  gateway: Gateway,
  options: { readonly anchors?: readonly string[]; readonly keys?: readonly string[] } = {},
): Promise<readonly LogRecord[]> {
  return gateway.evidence.verify({ organizationId: everyOrganization, ...options });
}

describe.each(stores)("evidence on %s", (_, open) => {
  it("is sealed in the background into a signed log for each organization", async () => {
    const log = eventLog();
    const { gateway, chat, clock, createKey } = await sealing({
      store: open(),
      observers: log.observers,
    });
    const { chat: other } = await createKey({ organizationId: "größer & co" });
    for (let call = 0; call < 3; call++) await gateway.fetch(chat());
    await gateway.fetch(other());
    await clock.until(log.seeing("checkpoint.signed", 3));
    expect(await verifyAll(gateway)).toEqual([
      { organizationId: null, size: 1, checkpoints: 1, anchors: 0, problem: null },
      { organizationId: "größer & co", size: 3, checkpoints: 1, anchors: 0, problem: null },
      { organizationId, size: 7, checkpoints: 1, anchors: 0, problem: null },
    ]);
    const [checkpoint] = (await gateway.evidence.checkpoints({ organizationId })).data;
    expect(log.seen).toContainEqual({
      type: "checkpoint.signed",
      at: expect.any(Number),
      organizationId,
      number: 0,
      size: 7,
      note: checkpoint?.note,
    });
    await gateway.fetch(chat());
    await clock.until(log.seeing("checkpoint.signed", 4));
    const anchors = [checkpoint?.note ?? ""];
    expect((await verifyAll(gateway, { anchors })).at(-1)).toEqual({
      organizationId,
      size: 9,
      checkpoints: 2,
      anchors: 1,
      problem: null,
    });
  });

  it("is sealed once by concurrent calls, however slow their reads are", async () => {
    const { gateway, chat } = await sealing({ store: slowlyRead(open()) });
    for (let round = 0; round < 5; round++) {
      await gateway.fetch(chat());
      await Promise.all(Array.from({ length: 4 }, () => gateway.evidence.seal()));
    }
    expect(await verifyAll(gateway)).toMatchObject([
      { organizationId: null, size: 1, checkpoints: 1, problem: null },
      { organizationId, size: 11, checkpoints: 5, problem: null },
    ]);
  });

  it("is verified while its log grows", async () => {
    const store = open();
    let grow: (() => Promise<void>) | null = null;
    const list: Store["checkpoints"]["list"] = async (log, { cursor }) => {
      const growOnce = cursor === null ? null : grow;
      if (growOnce) grow = null;
      await growOnce?.();
      return store.checkpoints.list(log, { cursor, limit: 1 });
    };
    const { gateway, chat } = await sealing({
      store: { ...store, checkpoints: { ...store.checkpoints, list } },
    });
    async function callAndSeal(): Promise<void> {
      await gateway.fetch(chat());
      await gateway.evidence.seal();
    }
    for (let call = 0; call < 2; call++) await callAndSeal();
    grow = callAndSeal;
    expect(await gateway.evidence.verify({ organizationId })).toMatchObject([
      { size: 7, checkpoints: 3, problem: null },
    ]);
  });

  it("is verified while its log grows for longer than leaves may wait", async () => {
    const store = open();
    let grow = async (): Promise<void> => {};
    const leaves: Store["checkpoints"]["leaves"] = async (log, paging) => {
      const growOnce = grow;
      grow = async () => {};
      await growOnce();
      return store.checkpoints.leaves(log, paging);
    };
    const { gateway, clock, chat } = await sealing({
      store: { ...store, checkpoints: { ...store.checkpoints, leaves } },
    });
    await gateway.fetch(chat());
    await gateway.evidence.seal();
    grow = async () => {
      await clock.advance("2m");
      await gateway.fetch(chat());
    };
    expect(await gateway.evidence.verify({ organizationId })).toMatchObject([
      { size: 3, checkpoints: 1, problem: null },
    ]);
  });

  it("is sealed densely by two gateways at once", async () => {
    const store = open();
    const one = await sealing({ store });
    const other = await sealing({ store, ids: countingIds(1), key: { label: "other" } });
    await Promise.all(
      [one, other, one, other].map(async ({ gateway, chat }) => {
        for (let call = 0; call < 5; call++) {
          await gateway.fetch(chat());
          await gateway.evidence.seal();
        }
      }),
    );
    await one.gateway.evidence.seal();
    expect(await verifyAll(one.gateway)).toMatchObject([
      { organizationId: null, size: 1, problem: null },
      { organizationId, size: 42, problem: null },
    ]);
  });
});

describe("other work of the process", () => {
  it("runs between logs that are sealed and verified", async () => {
    const { gateway, createKey } = await sealing();
    for (let log = 0; log < 5; log++) await createKey({ organizationId: `other-${log}` });
    expect(await turnsDuring(gateway.evidence.seal())).toBeGreaterThan(5);
    expect(await turnsDuring(verifyAll(gateway))).toBeGreaterThan(5);
  });

  it("runs between the checkpoints of a log", async () => {
    const { gateway, store } = await sealing();
    await gateway.evidence.seal();
    const { leaf } = (await sealedLeaves(store))[0] ?? {};
    for (let at = 0; at < 200 && leaf; at++) {
      const meta = leaf.meta.replace(leaf.id, `leaf-${at}`);
      await store.evidence.record({ ...leaf, id: `leaf-${at}`, meta, hash: leafHash(meta) });
      await gateway.evidence.seal();
    }
    const verifying = gateway.evidence.verify({ organizationId });
    expect(await turnsDuring(verifying)).toBeGreaterThan(2);
    expect(await verifying).toMatchObject([{ checkpoints: 201, problem: null }]);
  });
});

describe("a checkpoint", () => {
  it("is a signed note of a transparency log", async () => {
    const { gateway } = await sealing();
    await gateway.evidence.seal();
    const [checkpoint] = (await gateway.evidence.checkpoints({ organizationId })).data;
    const [text = "", line = ""] = (checkpoint?.note ?? "").split("\n\n");
    expect(text).toMatch(/^tollgate\.example\/organizations\/organization-1\n1\n[\w+/]{43}=$/);
    const [, encoded = ""] = /^\u2014 tollgate\.example (\S+)\n$/.exec(line) ?? [];
    const bytes = Buffer.from(encoded, "base64");
    expect(verify(null, Buffer.from(`${text}\n`), publicKey, bytes.subarray(4))).toBe(true);
    const [name, id, ...key] = (gateway.evidence.verificationKey ?? "").split("+");
    expect([name, id]).toEqual(["tollgate.example", bytes.subarray(0, 4).toString("hex")]);
    expect(Buffer.from(key.join("+"), "base64")).toEqual(
      Buffer.concat([Uint8Array.of(1), signer.publicKey]),
    );
  });

  it("that a crash left unsigned is signed as it is", async () => {
    const store = memoryStore();
    const failing: EvidenceSigner = { ...signer, sign: () => Promise.reject(new Error("down")) };
    const crashed = await sealing({ store, evidence: { signer: failing } });
    await expect(crashed.gateway.evidence.seal()).rejects.toMatchObject({
      code: "evidence_unavailable",
    });
    await crashed.gateway.fetch(crashed.chat());
    const unsigned = await store.checkpoints.last("");
    expect(unsigned).toMatchObject({ number: 0, size: 1, note: null });
    const next = await sealing({ store, ids: countingIds(1), key: { label: "next" } });
    await next.gateway.evidence.seal();
    const { data } = await next.gateway.evidence.checkpoints({ organizationId: null });
    expect(data).toMatchObject([{ number: 0, size: 1, note: expect.stringMatching(/\n\n/) }]);
    expect((await verifyAll(next.gateway)).map(({ problem }) => problem)).toEqual([null, null]);
  });

  it("isn't signed for a log that was changed since the last one", async () => {
    const { store, edit } = editable();
    const log = eventLog();
    const { gateway, chat } = await sealing({ store, observers: log.observers });
    await gateway.fetch(chat());
    await gateway.evidence.seal();
    const signed = () => log.seen.filter(({ type }) => type === "checkpoint.signed").length;
    const before = signed();
    const rolledBack = (last: Checkpoint | null) => last && { ...last, number: 0, note: "other" };
    const grown = (last: Checkpoint | null) =>
      last && { ...last, frontier: last.frontier.map((byte) => byte ^ 1) };
    await gateway.fetch(chat());
    for (const last of [rolledBack, grown, () => null]) {
      edit.last = last;
      await expect(gateway.evidence.seal()).rejects.toMatchObject({
        code: "evidence_unavailable",
      });
    }
    expect(signed()).toBe(before);
    edit.last = null;
    await gateway.evidence.seal();
    expect(signed()).toBe(before + 1);
  });

  it("is signed by another process only if the last note is of the log's tree, with its signature", async () => {
    const { store, edit } = editable();
    const { gateway } = await sealing({ store });
    await gateway.evidence.seal();
    const next = await sealing({ store, ids: countingIds(1), key: { label: "next" } });
    const notes: readonly ((note: string) => string)[] = [
      (note) => note.replace(/.{6}\n$/, "AAAA==\n"),
      (note) => note.replace("\n1\n", "\n2\n"),
      (note) => note.replace("\n\n", "\n"),
      (note) => `${note.split("\n\n")[0]}\n\n`,
    ];
    for (const [at, change] of notes.entries()) {
      edit.last = (last) => last && { ...last, note: change(last.note ?? "") };
      await expect(next.gateway.evidence.seal(), String(at)).rejects.toMatchObject({
        code: "evidence_unavailable",
      });
    }
    edit.last = null;
    expect(await store.checkpoints.last(organizationId)).toMatchObject({ number: 0 });
    await next.gateway.evidence.seal();
    expect(await store.checkpoints.last(organizationId)).toMatchObject({ number: 1, size: 2 });
  });

  it("follows one that was signed with the key before", async () => {
    const store = memoryStore();
    const { gateway } = await sealing({ store });
    await gateway.evidence.seal();
    const { privateKey: renewed } = generateKeyPairSync("ed25519");
    const next = await sealing({
      store,
      ids: countingIds(1),
      key: { label: "next" },
      evidence: { signer: ed25519Signer({ name: signer.name, privateKey: renewed }) },
    });
    await next.gateway.evidence.seal();
    const keys = [gateway, next.gateway].map(({ evidence }) => evidence.verificationKey ?? "");
    expect((await verifyAll(next.gateway, { keys })).at(-1)).toMatchObject({
      checkpoints: 2,
      problem: null,
    });
  });

  it("that was left unsigned isn't signed if the log was changed below it", async () => {
    const { store, edit } = editable();
    const { failing, fault } = failingSigner();
    const { gateway, chat } = await sealing({ store, evidence: { signer: failing } });
    await gateway.evidence.seal();
    await gateway.fetch(chat());
    fault.isDown = true;
    const refused = { code: "evidence_unavailable" };
    await expect(gateway.evidence.seal()).rejects.toMatchObject(refused);
    fault.isDown = false;
    const other = new Uint8Array(32);
    edit.leaf = (sealed) =>
      sealed.index === 1 ? changed(sealed, (leaf) => ({ ...leaf, hash: other })) : sealed;
    await expect(gateway.evidence.seal()).rejects.toMatchObject(refused);
    edit.leaf = null;
    edit.checkpoint = (one) => (one.number === 0 ? { ...one, frontier: other } : one);
    await expect(gateway.evidence.seal()).rejects.toMatchObject(refused);
    const unsigned = { number: 1, size: 3, note: null };
    expect(await store.checkpoints.last(organizationId)).toMatchObject(unsigned);
    edit.checkpoint = null;
    await gateway.evidence.seal();
    expect((await verifyAll(gateway)).at(-1)).toMatchObject({ checkpoints: 2, problem: null });
  });

  it("is reported only by the process that signed it first", async () => {
    const store = memoryStore();
    const log = eventLog();
    const first = await sealing({ store, observers: log.observers });
    const overtaken: EvidenceSigner = {
      ...signer,
      async sign(bytes) {
        await first.gateway.evidence.seal();
        return signer.sign(bytes);
      },
    };
    const second = await sealing({
      store,
      ids: countingIds(1),
      key: { label: "second" },
      evidence: { signer: overtaken },
      observers: log.observers,
    });
    await second.gateway.evidence.seal();
    const signed = log.seen.flatMap((event) =>
      event.type === "checkpoint.signed" ? [[event.organizationId, event.number]] : [],
    );
    expect(signed).toEqual([
      [null, 0],
      [organizationId, 0],
    ]);
  });

  it("isn't signed with a signature of another key", async () => {
    const { privateKey: other } = generateKeyPairSync("ed25519");
    const wrong = { ...signer, sign: (bytes: Uint8Array) => sign(null, bytes, other) };
    const { gateway, store } = await sealing({ evidence: { signer: wrong } });
    await expect(gateway.evidence.seal()).rejects.toMatchObject({ code: "evidence_unavailable" });
    expect(await store.checkpoints.last("")).toMatchObject({ note: null });
  });

  it("is signed within five seconds or not at all", async () => {
    const silent: EvidenceSigner = { ...signer, sign: () => new Promise(() => {}) };
    const { gateway, clock } = await sealing({ evidence: { signer: silent } });
    await expect(clock.until(gateway.evidence.seal())).rejects.toMatchObject({
      code: "evidence_unavailable",
    });
  });
});

describe("sealing in the background", () => {
  it("reports once that leaves wait too long, and once that they no longer do", async () => {
    const log = eventLog();
    const { failing, fault } = failingSigner();
    fault.isDown = true;
    const evidence = { signer: failing, alarmAfter: "10s" } as const;
    const { gateway, clock } = await sealing({ evidence, observers: log.observers });
    const start = clock.now();
    await clock.advance("1m");
    expect(gateway.status().unsealedMs).toBe(60_000);
    fault.isDown = false;
    await clock.advance("1m");
    expect(gateway.status().unsealedMs).toBe(0);
    const alarms = log.seen.filter((event) => "what" in event && event.what === "sealing");
    expect(alarms).toEqual([
      { type: "gateway.degraded", at: start + 10_500, what: "sealing" },
      { type: "gateway.restored", at: start + 60_500, what: "sealing" },
    ]);
  });

  it("goes on until the gateway closes", async () => {
    const store = memoryStore();
    let rounds = 0;
    const counting: Store = {
      ...store,
      checkpoints: {
        ...store.checkpoints,
        unsealed(query) {
          rounds++;
          return store.checkpoints.unsealed(query);
        },
      },
    };
    const { gateway, clock } = await sealing({ store: counting });
    await clock.advance(2_000);
    expect(rounds).toBe(4);
    await gateway.close();
    await clock.advance("1m");
    expect(rounds).toBe(4);
  });
});

describe("verification", () => {
  it("finds every change of a sealed leaf, at its index", async () => {
    const { store, edit } = editable();
    const { gateway, chat } = await sealing({ store });
    for (let call = 0; call < 3; call++) {
      await gateway.fetch(chat());
      await gateway.evidence.seal();
    }
    const { leaf: other } = (await sealedLeaves(store))[1] ?? {};
    const changes: readonly (readonly [string, (sealed: SealedLeaf) => SealedLeaf | null])[] = [
      ["was removed", (sealed) => ({ ...sealed, leaf: null })],
      ["is missing", () => null],
      ["its hash", (sealed) => changed(sealed, (leaf) => ({ ...leaf, meta: `${leaf.meta} ` }))],
      ["its hash", (sealed) => changed(sealed, (leaf) => ({ ...leaf, hash: new Uint8Array(32) }))],
      ["match its row", (sealed) => changed(sealed, (leaf) => ({ ...leaf, kind: "decision" }))],
      ["match its row", (sealed) => changed(sealed, (leaf) => ({ ...leaf, at: leaf.at + 1 }))],
      ["match its row", (sealed) => changed(sealed, (leaf) => ({ ...leaf, ...garbage }))],
      ["aren't those", (sealed) => (other ? { ...sealed, leaf: other } : null)],
    ];
    for (const at of [2, 4, 6])
      for (const [message, change] of changes) {
        edit.leaf = (sealed) => (sealed.index === at ? change(sealed) : sealed);
        const [, log] = await verifyAll(gateway);
        const whole = message === "aren't those";
        expect(log?.problem?.message, `${at} ${message}`).toContain(message);
        expect(log?.problem?.index).toBe(whole ? log?.size : at);
        expect(log?.size).toBeLessThanOrEqual(at);
      }
    edit.leaf = null;
    expect((await verifyAll(gateway)).map(({ problem }) => problem)).toEqual([null, null]);
  });

  it("finds every change of a checkpoint", async () => {
    const { store, edit } = editable();
    const { gateway, chat } = await sealing({ store });
    for (let call = 0; call < 3; call++) {
      await gateway.fetch(chat());
      await gateway.evidence.seal();
    }
    const notes = (await gateway.evidence.checkpoints({ organizationId })).data;
    const of = (number: number) => notes[number]?.note ?? "";
    const changes: readonly ((checkpoint: Checkpoint) => Checkpoint | null)[] = [
      () => null,
      (checkpoint) => ({ ...checkpoint, size: checkpoint.size + 1 }),
      (checkpoint) => ({ ...checkpoint, note: of(checkpoint.number).replace("\n5\n", "\n4\n") }),
      (checkpoint) => ({ ...checkpoint, note: of(checkpoint.number - 1) }),
      (checkpoint) => ({ ...checkpoint, size: 3, note: of(checkpoint.number - 1) }),
      (checkpoint) => ({
        ...checkpoint,
        note: of(checkpoint.number).replace(/.{6}\n$/, "AAAA==\n"),
      }),
      (checkpoint) => ({ ...checkpoint, note: "\n" }),
      (checkpoint) => ({ ...checkpoint, note: null }),
    ];
    for (const [at, change] of changes.entries()) {
      edit.checkpoint = (one) => (one.number === 1 ? change(one) : one);
      const log = (await verifyAll(gateway)).at(-1);
      expect(log, String(at)).toMatchObject({ checkpoints: 1, problem: { checkpoint: 1 } });
    }
  });

  it("finds a rewritten or shortened log by an anchor from outside", async () => {
    const store = memoryStore();
    const first = await sealing({ store });
    await first.gateway.fetch(first.chat());
    await first.gateway.evidence.seal();
    const [kept] = (await first.gateway.evidence.checkpoints({ organizationId })).data;
    const anchors = [kept?.note ?? ""];
    expect((await verifyAll(first.gateway, { anchors })).at(-1)).toMatchObject({ anchors: 1 });

    const rewritten = await sealing({ key: { label: "another label" } });
    await rewritten.gateway.evidence.seal();
    expect((await verifyAll(rewritten.gateway, { anchors })).at(-1)).toMatchObject({
      anchors: 0,
      problem: { message: expect.stringContaining("no checkpoint for the anchor of 3 leaves") },
    });
    await rewritten.gateway.fetch(rewritten.chat({ max_tokens: 7 }));
    const fork = await sealing({ ids: countingIds(3) });
    await fork.gateway.fetch(fork.chat());
    await fork.gateway.evidence.seal();
    expect((await verifyAll(fork.gateway, { anchors })).at(-1)).toMatchObject({
      problem: { message: expect.stringContaining("has another root") },
    });
    const empty = await sealing({ key: { organizationId: "other" } });
    await expect(verifyAll(empty.gateway, { anchors })).rejects.toMatchObject({
      code: "invalid_argument",
      param: "anchors",
    });
  });

  it("trusts only the given keys", async () => {
    const { gateway } = await sealing();
    await gateway.evidence.seal();
    const { privateKey: other } = generateKeyPairSync("ed25519");
    const stranger = await sealing({
      evidence: { signer: ed25519Signer({ name: signer.name, privateKey: other }) },
    });
    const keys = [stranger.gateway.evidence.verificationKey ?? ""];
    expect((await verifyAll(gateway, { keys }))[0]).toMatchObject({
      size: 0,
      problem: { index: 0, checkpoint: 0, message: expect.stringContaining("no valid signature") },
    });
    const both = [...keys, gateway.evidence.verificationKey ?? ""];
    expect((await verifyAll(gateway, { keys: both }))[0]?.problem).toBe(null);
    const { gateway: unsealed } = await createTestGateway();
    await expect(verifyAll(unsealed)).rejects.toMatchObject({ param: "keys" });
    for (const key of ["", "a+b+c", (keys[0] ?? "").replace("+", "x+")])
      await expect(verifyAll(gateway, { keys: [key] }), key).rejects.toMatchObject({
        code: "invalid_argument",
      });
  });
});

describe("without `evidence`", () => {
  it("a database that was never sealed fails once a leaf is older than the alarm time", async () => {
    const { gateway, clock, chat } = await createTestGateway();
    const { gateway: sealed } = await sealing();
    const keys = [sealed.evidence.verificationKey ?? ""];
    const all: VerifyOptions = { organizationId: everyOrganization, keys };
    const start = clock.now();
    await gateway.fetch(chat());
    await clock.advance("60s");
    expect(await gateway.evidence.verify(all)).toEqual([]);
    await clock.advance("1s");
    const unsealed = (count: number) => ({
      size: 0,
      checkpoints: 0,
      anchors: 0,
      problem: {
        index: 0,
        checkpoint: 0,
        message: expect.stringMatching(
          new RegExp(
            `^nothing is sealed: ${count} lea.* sealed .*${new Date(start).toISOString()}$`,
          ),
        ),
      },
    });
    expect(await gateway.evidence.verify(all)).toEqual([
      { organizationId: null, ...unsealed(1) },
      { organizationId, ...unsealed(3) },
    ]);
    expect(await gateway.evidence.verify({ ...all, organizationId })).toEqual([
      { organizationId, ...unsealed(3) },
    ]);
  });

  it("nothing is sealed, and `seal` says why", async () => {
    const { gateway, chat, clock, store } = await createTestGateway();
    await gateway.fetch(chat());
    await clock.advance("2m");
    expect(await store.checkpoints.last(organizationId)).toBe(null);
    expect(gateway.status().unsealedMs).toBe(null);
    expect(await gateway.health()).toEqual({ ready: true, reasons: [], degraded: [] });
    await expect(gateway.evidence.seal()).rejects.toMatchObject({ code: "invalid_argument" });
    expect(gateway.evidence.verificationKey).toBe(null);
  });
});

describe("a signer", () => {
  it("takes a key as PEM, JWK or KeyObject, and shows it nowhere", () => {
    const jwk = privateKey.export({ format: "jwk" });
    for (const key of [pem, jwk, privateKey]) {
      const one = ed25519Signer({ name: "a", privateKey: key });
      expect(one.publicKey).toEqual(signer.publicKey);
      expect(inspect(one, { depth: 9, showHidden: true })).not.toContain(jwk.d);
      expect(JSON.stringify(one)).not.toContain(jwk.d);
    }
  });

  it("is refused with any other key, without showing it", () => {
    const { privateKey: rsa } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    const damaged = pem.replace("MC4CAQ", "MC4CAB");
    for (const key of [rsa, publicKey, damaged, "secret text", { kty: "OKP", d: "secret text" }])
      try {
        ed25519Signer({ name: "a", privateKey: key });
        expect.fail("The key was accepted.");
      } catch (thrown) {
        expect(thrown).toMatchObject({
          code: "invalid_configuration",
          problems: [{ path: "privateKey" }],
        });
        expect(inspect(thrown)).not.toMatch(/secret text|MC4C/);
      }
  });

  it("is refused with a name that no verifier can read", () => {
    for (const name of ["", "two words", "a+b", "a".repeat(101)])
      expect(() => ed25519Signer({ name, privateKey }), name).toThrow(
        expect.objectContaining({
          code: "invalid_configuration",
          problems: [expect.objectContaining({ path: "name" })],
        }),
      );
  });

  it.each([
    ["evidence.signer.name", { ...signer, name: "two words" }],
    ["evidence.signer.name", { ...signer, name: "a+b" }],
    ["evidence.signer.publicKey", { ...signer, publicKey: new Uint8Array(31) }],
    ["evidence.signer.sign", { ...signer, sign: "secret" }],
    ["evidence.signer", { ...signer, contract: 2 }],
  ])("must have a valid `%s`", (path, wrong) => {
    const evidence = { signer: wrong as unknown as EvidenceSigner };
    const options = { store: memoryStore(), providers: {}, evidence };
    try {
      createGateway(options);
      expect.fail("The signer was accepted.");
    } catch (thrown) {
      const problems: readonly { readonly path: string }[] = Reflect.get(
        Object(thrown),
        "problems",
      );
      expect(problems.map((problem) => problem.path)).toContain(path);
    }
  });
});

/** How often the event loop comes round while a promise is pending. */
async function turnsDuring(promise: Promise<unknown>): Promise<number> {
  let isDone = false;
  const done = promise.finally(() => {
    isDone = true;
  });
  let turns = 0;
  for (; !isDone; turns++) await turn();
  await done;
  return turns;
}

/** A signer that throws while it is down. */
function failingSigner() {
  const fault = { isDown: false };
  const sign = (bytes: Uint8Array) => {
    if (fault.isDown) throw new Error("down");
    return signer.sign(bytes);
  };
  const failing: EvidenceSigner = { ...signer, sign };
  return { failing, fault };
}

/** A store that answers every other question for the last checkpoint late. */
function slowlyRead(store: Store): Store {
  let reads = 0;
  return {
    ...store,
    checkpoints: {
      ...store.checkpoints,
      async last(log) {
        const last = await store.checkpoints.last(log);
        if (++reads % 2 === 1) for (let turns = 0; turns < 50; turns++) await turn();
        return last;
      },
    },
  };
}

/** A store whose sealed leaves and checkpoints a test can change as they are read. */
function editable() {
  const store = memoryStore();
  const edit: {
    leaf: ((sealed: SealedLeaf) => SealedLeaf | null) | null;
    checkpoint: ((checkpoint: Checkpoint) => Checkpoint | null) | null;
    last: ((last: Checkpoint | null) => Checkpoint | null) | null;
  } = { leaf: null, checkpoint: null, last: null };
  const editing: Store = {
    ...store,
    checkpoints: {
      ...store.checkpoints,
      async last(log) {
        const last = await store.checkpoints.last(log);
        return edit.last !== null && log === organizationId ? edit.last(last) : last;
      },
      async list(query, paging) {
        const page = await store.checkpoints.list(query, paging);
        const { checkpoint } = edit;
        if (checkpoint === null || query.organizationId !== organizationId) return page;
        return { ...page, data: page.data.flatMap((one) => checkpoint(one) ?? []) };
      },
      async leaves(query, paging) {
        const page = await store.checkpoints.leaves(query, paging);
        const { leaf } = edit;
        if (leaf === null || query.organizationId !== organizationId) return page;
        return { ...page, data: page.data.flatMap((one) => leaf(one) ?? []) };
      },
    },
  };
  return { store: editing, edit };
}

const garbage = { meta: "{", hash: leafHash("{") };

type Leaf = NonNullable<SealedLeaf["leaf"]>;

function changed(sealed: SealedLeaf, change: (leaf: Leaf) => Leaf): SealedLeaf {
  return { ...sealed, leaf: sealed.leaf && change(sealed.leaf) };
}

async function sealedLeaves(store: Store): Promise<readonly SealedLeaf[]> {
  const paging = { cursor: null, limit: 1_000 };
  return (await store.checkpoints.leaves({ organizationId, from: 0 }, paging)).data;
}
