import { join } from "node:path";
import { ProviderError } from "@tollgate/core/provider";
import { sqliteStore } from "@tollgate/store-sqlite";
import { createTestGateway } from "@tollgate/testing";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { temporaryFolder } from "./command-line.ts";
import { runIn, runJsonIn } from "./in-process.ts";

const folder = temporaryFolder();
const lastWeek = ["--from", "2026-01-01", "--to", "2026-01-08"];
const page = z.object({ data: z.array(z.looseObject({ id: z.string() })) });

/** A call that fails in mid-answer, one that a provider rejects, and one that a budget refuses. */
beforeAll(async () => {
  const { gateway, chat, provider, clock } = await createTestGateway({
    store: sqliteStore({ filename: join(folder, "tollgate.db") }),
    retries: { max: 0 },
    budgets: [{ id: "few", limit: { requests: 2 }, period: "day" }],
  });
  const cut = new ProviderError("Cut.", { reason: "connection_reset", delivery: "unknown" });
  const answer = { reasoning: "Let me look.", text: ["Ninety ", "days."] };
  provider.fail(cut, { afterEvents: 3, answer });
  const messages = [
    { role: "system", content: "Quote the handbook.\n\nBe brief." },
    { role: "user", content: "How long?" },
  ];
  const metadata = { ticket: "T-17" };
  await (await gateway.fetch(chat({ messages, metadata, stream: true }))).text();
  const upstreamError = {
    error: { message: "top_k is not supported; key sk-live-0123456789abc." },
  };
  const details = {
    reason: "status_400",
    delivery: "answered",
    status: 400,
    upstreamError,
  } as const;
  provider.fail(new ProviderError("The provider answered with status 400.", details));
  await clock.advance("1h");
  for (const _call of ["rejected", "refused"]) await (await gateway.fetch(chat())).text();
  await gateway.close();
}, 30_000);

describe("the records on the command line", { timeout: 60_000 }, () => {
  it("show the calls that budgets refused last week", async () => {
    const { data } = page.parse(
      await runJsonIn(folder, "decisions", "list", "--refused", "budget", ...lastWeek),
    );
    const refusal = { by: "budget", budgetId: "few", unit: "requests", needed: 1, left: 0 };
    expect(data).toMatchObject([{ effect: "permit", refusal }]);
  });

  it("show the failed attempts and the provider's errors", async () => {
    const { output } = await runIn(folder, ["steps", "list", "--outcome", "failed", ...lastWeek]);
    const [head, rejected, cut] = output.trimEnd().split("\n");
    expect(head).toMatch(/REASON +ERROR/);
    expect(rejected).toMatch(/status_400 +top_k is not supported; key \[removed\] /);
    expect(cut).toMatch(/connection_reset +- /);
  });

  it("show the client's answer and its instructions", async () => {
    const { data } = page.parse(await runJsonIn(folder, "steps", "--metadata", "ticket=T-17"));
    expect(data).toHaveLength(1);
    const { output } = await runIn(folder, ["steps", "content", data[0]?.id ?? ""]);
    expect(output).toMatch(/^id +\S+\nsession +\S+\noutcome +failed\n/);
    expect(output).toContain(
      [
        "instructions:\n  Quote the handbook.\n  \n  Be brief.",
        "input:\n  system     Quote the handbook.\\u{a}\\u{a}Be brief.\n  user       How long?",
        "reasoning:\n  Let me look.",
        "answer:\n  assistant  Ninety \n",
      ].join("\n\n"),
    );
  });
});
