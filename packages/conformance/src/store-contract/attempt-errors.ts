import { commitContent, type Step, type Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { hex, sha256, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createIntents, type Intents } from "./intents.ts";
import { attemptSettlement } from "./settlement-intent.ts";

const text = "max_tokens is too large \u{1f600}: “ä”";
const paging = { cursor: null, limit: 10 };
const aDayLater = { from: "", at: Date.UTC(2026, 0, 7, 12), keep: 86_400_000, limit: 100 };

/** The provider's error of a failed attempt, which is content of the Step. */
export function attemptErrorTests(test: ContractTest): void {
  test("keeps each attempt's provider error", async ({ store, intents }) => {
    const step = await failTwice(store, intents, [saying("first"), saying(text)]);
    const found = [
      ["first", hex(saying("first").contentCommitment)],
      [text, hex(saying(text).contentCommitment)],
      [null, null],
    ];
    expect(errorsOf(await store.steps.get("acme", step))).toEqual(found);
    expect(errorsOf(await store.steps.get(null, step))).toEqual(found);
    const { data } = await store.steps.list({ organizationId: "acme" }, paging);
    expect(data.map(errorsOf)).toEqual([found]);
  });

  test("keeps the provider error of the final attempt", async ({ store, intents }) => {
    const step = intents.step([user("a")]);
    await expectOpened(store.openStep(step));
    const attempt = { outcome: "failed", reason: "status_400", error: saying(text) } as const;
    await store.settleStep(
      intents.settlement(step, { outcome: "failed", attempt: attemptSettlement(1, attempt) }),
    );
    const commitment = hex(saying(text).contentCommitment);
    expect(errorsOf(await store.steps.get("acme", step.stepId))).toEqual([[text, commitment]]);
  });

  test("keeps no error text if only digests are kept", async ({ store, intents }) => {
    const digest = { ...saying(text), content: null };
    const step = await failTwice(store, intents, [digest, null]);
    const found = [
      [null, hex(digest.contentCommitment)],
      [null, null],
      [null, null],
    ];
    expect(errorsOf(await store.steps.get("acme", step))).toEqual(found);
  });

  test("keeps the error texts of organizations with equal ids apart", async ({
    store,
    intents,
  }) => {
    const theirs = createIntents("globex");
    await store.keys.insert(theirs.key());
    const mine = await failTwice(store, intents, [saying("mine"), null]);
    intents.id();
    const other = await failTwice(store, theirs, [saying("theirs"), null]);
    const messages = async (organization: string, id: string) =>
      errorsOf(await store.steps.get(organization, id))?.map(([message]) => message);
    expect(await messages("acme", mine)).toEqual(["mine", null, null]);
    expect(await messages("globex", other)).toEqual(["theirs", null, null]);
    const { data } = await store.steps.list({ organizationId: null }, paging);
    expect(new Set(data.map((step) => errorsOf(step)?.[0]?.[0]))).toEqual(
      new Set(["mine", "theirs"]),
    );
  });

  test("erases error texts together with the Session's content", async ({ store, intents }) => {
    const step = await failTwice(store, intents, [saying("first"), saying(text)]);
    const leaf = () => intents.leaf("transcripts.erased");
    expect(await store.sessions.sweep({ ...aDayLater, leaf })).toEqual({ removed: 1, next: null });
    expect(errorsOf(await store.steps.get("acme", step))).toEqual([
      [null, hex(saying("first").contentCommitment)],
      [null, hex(saying(text).contentCommitment)],
      [null, null],
    ]);
    expect(await store.sessions.sweep({ ...aDayLater, leaf })).toEqual({ removed: 0, next: null });
  });
}

type ErrorContent =
  | ReturnType<typeof saying>
  | (Omit<ReturnType<typeof saying>, "content"> & { content: null });

/** Opens a Step of three attempts. The first two fail with these errors, the last completes. */
async function failTwice(
  store: Store,
  intents: Intents,
  [first, second]: readonly [ErrorContent | null, ErrorContent | null],
): Promise<string> {
  const step = intents.step([user("a")]);
  await expectOpened(store.openStep(step));
  const failed = { outcome: "failed", reason: "status_400" } as const;
  const end = (number: number, error: ErrorContent | null) =>
    attemptSettlement(number, { ...failed, error });
  const attempt = intents.attempt(step, { ended: end(1, first) });
  expect(await store.openAttempt(attempt)).toEqual({ opened: true });
  const last = { ...attempt.attempt, number: 3 };
  const further = intents.attempt(step, { ended: end(2, second), attempt: last });
  expect(await store.openAttempt(further)).toEqual({ opened: true });
  await store.settleStep(intents.settlement(step, { attempt: attemptSettlement(3) }));
  return step.stepId;
}

function saying(message: string) {
  const contentSalt = sha256("error");
  const content = Buffer.from(message);
  return { content, contentSalt, contentCommitment: commitContent(contentSalt, content) };
}

function errorsOf(step: Step | null) {
  return step?.attempts.map(({ end }) => [
    end?.error?.message ?? null,
    end?.error?.commitment ?? null,
  ]);
}
