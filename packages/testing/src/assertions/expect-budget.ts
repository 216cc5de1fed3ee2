import type { BudgetStatus, Gateway } from "@tollgate/core";
import { fail } from "./fail.ts";
import { inWords, readError } from "./read-error.ts";

/** Expected amounts of a budget, in its unit: nanodollars, tokens or requests. Omitted amounts may have any value. */
export interface ExpectedBudget {
  readonly settled?: number;
  readonly held?: number;
  readonly remaining?: number;
  /** The counter of a budget with `each`: a key's or an organization's id, or `[organization, user]` as JSON. */
  readonly subject?: string;
}

/** The amounts of one counter of a budget. */
export type BudgetFigures = Pick<BudgetStatus, "settled" | "held" | "remaining" | "limit">;

/**
 * Expects the amounts of a budget in its current period (0 without any requests), and returns them.
 * @throws AssertionError naming every amount that differs
 * @throws GatewayError `budget_not_found`
 */
export async function expectBudget(
  gateway: Gateway,
  id: string,
  { subject, ...expected }: ExpectedBudget,
): Promise<BudgetFigures> {
  const { limit } = await gateway.budgets.get({ id });
  const asked = subject === undefined ? { id } : { id, subject };
  const { data } = await gateway.budgets.status(asked);
  if (data.length > 1)
    fail(`The budget ${id} has several counters: name one as subject.`, {
      actual: data.map((counter) => counter.subject),
    });
  const figures = data[0] ?? { limit, settled: 0, held: 0, remaining: limit };
  const differing = (["settled", "held", "remaining"] as const).filter(
    (name) => expected[name] !== undefined && expected[name] !== figures[name],
  );
  if (differing.length === 0) return figures;
  const said = differing.map((name) => `${name} is ${figures[name]}, not ${expected[name]}`);
  fail(`The budget ${id} differs: ${said.join("; ")}.`, {
    actual: Object.fromEntries(differing.map((name) => [name, figures[name]])),
    expected: Object.fromEntries(differing.map((name) => [name, expected[name]])),
  });
}

/**
 * Expects that a request was rejected because a budget is exhausted: 429 `budget_exceeded`, naming that budget.
 * @throws AssertionError with the actual answer
 */
export async function expectExhausted(answer: Response, id: string): Promise<void> {
  const error = await readError(answer);
  if (answer.status !== 429 || error.code !== "budget_exceeded")
    fail(
      `The budget ${id} should have rejected the request, but it was ${inWords(answer, error)}`,
      {
        actual: answer.status,
        expected: 429,
      },
    );
  if (!error.message.startsWith(`The budget ${id} `))
    fail(`A budget other than ${id} rejected the request: ${error.message}`);
}
