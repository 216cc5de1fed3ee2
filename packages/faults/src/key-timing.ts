/**
 * `npm run faults -- key-timing --tries 20000 --seed 7`: whether the time of a rejection reveals how much of an API key is
 * right (S27). Compares keys that begin like a real one with random ones. Fails if their medians differ by 2 % or more, in
 * each of three rounds.
 */
import { crc32 } from "node:zlib";
import { createTestGateway } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { seededRandom } from "./random.ts";

const maxDifference = 0.02;
const maxRounds = 3;
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const { tries, seed } = readNumbers({ tries: 20_000, seed: 7 });
const random = seededRandom(seed);
const { gateway, key } = await createTestGateway();
await compare(Math.ceil(tries / 10));
let difference = 1;
for (let round = 1; round <= maxRounds && difference >= maxDifference; round++) {
  const [near, far] = await compare(tries);
  difference = Math.abs(near - far) / far;
  process.stdout.write(
    `a key that begins right ${near.toFixed(2)} µs, a random one ${far.toFixed(2)} µs: ${(difference * 100).toFixed(2)} % apart\n`,
  );
}
await gateway.close();
process.exit(difference < maxDifference ? 0 : 1);

/** The median times in microseconds, over requests of both kinds in turn. */
async function compare(count: number): Promise<readonly [near: number, far: number]> {
  const [near, far]: [number[], number[]] = [[], []];
  for (let at = 0; at < count; at++) {
    const secrets = [key.secret.slice(3, 33) + randomText(13), randomText(43)] as const;
    for (const kind of at % 2 === 0 ? [0, 1] : [1, 0])
      (kind === 0 ? near : far).push(await timeOf(wellFormed(secrets[kind] ?? "")));
  }
  return [median(near), median(far)];
}

async function timeOf(secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  const request = new Request("http://in-process/v1/models", { headers });
  const started = performance.now();
  const { status } = await gateway.fetch(request);
  const microseconds = (performance.now() - started) * 1_000;
  if (status !== 401) throw new Error(`An unknown key got ${status}.`);
  return microseconds;
}

function randomText(length: number): string {
  return Array.from({ length }, () => alphabet[Math.floor(random() * 62)]).join("");
}

/** A key with the checksum that fits, so that it is looked up. */
function wellFormed(text: string): string {
  let checksum = "";
  for (let rest = crc32(text); checksum.length < 6; rest = Math.floor(rest / 62))
    checksum = `${alphabet[rest % 62]}${checksum}`;
  return `tg_${text}${checksum}`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
