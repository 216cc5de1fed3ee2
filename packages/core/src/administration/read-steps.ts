import type { StorePage, StorePaging } from "../contracts/repositories.ts";
import type { StepQuery } from "../contracts/step-query.ts";
import { parseModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import { lowerAscii } from "../domain/pattern.ts";
import type { Step } from "../domain/step.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { readStepFilter, type StepFilter } from "./step-filter.ts";

/** A page of Steps. Model patterns are applied here, so it can be shorter than its limit. */
export async function readSteps(
  line: GatewayContext,
  ready: () => Promise<void>,
  filter: StepFilter,
  paging: StorePaging,
): Promise<StorePage<Step>> {
  const { query, models } = readStepFilter(filter, line.dataClasses);
  await ready();
  const page = await line.store.steps.list({ ...plainModel(models), ...query }, paging);
  return { ...page, data: page.data.filter((step) => matchesPattern(models, step)) };
}

/** The store looks up the model of one plain id, which an index of it serves; the rest of the id is compared here. */
function plainModel(models: readonly string[] = []): Pick<StepQuery, "model"> {
  const [only, ...others] = models;
  const id = only === undefined || others.length > 0 ? null : parseModelId(only);
  return id === null || id.model.includes("*") ? {} : { model: [lowerAscii(id.model)] };
}

function matchesPattern(models: readonly string[] | undefined, step: Step): boolean {
  const last = step.attempts.at(-1);
  return models === undefined || (last !== undefined && selectsModel(models, last));
}
