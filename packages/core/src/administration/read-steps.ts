import type { StorePage, StorePaging } from "../contracts/repositories.ts";
import type { StepQuery } from "../contracts/step-query.ts";
import { parseModelId } from "../domain/model-id.ts";
import { selectsModel } from "../domain/model-pattern.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import type { Step } from "../domain/step.ts";
import type { Line } from "../pipeline/line.ts";
import { modelPatternsOf, type StepFilter, stepQueryOf } from "./step-filter.ts";

/** A page of Steps. Model patterns are applied here, so it can be shorter than its limit. */
export async function readSteps(
  line: Line,
  ready: () => Promise<void>,
  filter: StepFilter,
  paging: StorePaging,
): Promise<StorePage<Step>> {
  const query = { ...exactModel(filter.model), ...stepQueryOf(filter, line.dataClasses) };
  await ready();
  const page = await line.store.steps.list(query, paging);
  return { ...page, data: page.data.filter((step) => matchesPattern(filter.model, step)) };
}

/** One plain model id is left to the store's own filter. */
function exactModel(model: OneOrMany | undefined): Pick<StepQuery, "gateway" | "vendor" | "model"> {
  const [only, ...others] = modelPatternsOf(model) ?? [];
  if (only === undefined || others.length > 0 || only.includes("*")) return {};
  const id = parseModelId(only);
  return id === null ? {} : { gateway: [id.gateway], vendor: [id.vendor], model: [id.model] };
}

function matchesPattern(model: OneOrMany | undefined, step: Step): boolean {
  const last = step.attempts.at(-1);
  return model === undefined || (last !== undefined && selectsModel(model, last));
}
