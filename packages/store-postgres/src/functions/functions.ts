import { schemaVersion } from "@tollgate/store-sql";
import { assignSession, commonLength } from "./assigning.ts";
import { callFunction } from "./function-text.ts";
import { exchangeHolds, exchangeHoldsParameters, settleHolds, takeHolds } from "./holding.ts";
import { openStep, openStepParameters } from "./opening.ts";
import { settleStep, settleStepParameters } from "./settling.ts";

/** The functions of this release's schema. */
export interface Functions {
  /** The statements that make them. */
  readonly create: readonly string[];
  /** The statements that call them. */
  readonly openStep: string;
  readonly settleStep: string;
  readonly exchangeHolds: string;
}

/** Their names carry the schema's version: processes of two releases may work side by side while one replaces the other. */
export function createFunctions(schema: string): Functions {
  const named = (name: string): string => `${schema}.${name}_v${schemaVersion}`;
  const names = {
    openStep: named("open_step"),
    settleStep: named("settle_step"),
    assignSession: named("assign_session"),
    commonLength: named("common_length"),
    takeHolds: named("take_holds"),
    settleHolds: named("settle_holds"),
    exchangeHolds: named("exchange_holds"),
    sequence: `${schema}.sequence`,
  };
  return {
    create: [
      takeHolds(names.takeHolds),
      settleHolds(names.settleHolds),
      exchangeHolds(names.exchangeHolds),
      commonLength(names.commonLength),
      assignSession(names.assignSession, names.commonLength),
      openStep(names.openStep, names),
      settleStep(names.settleStep, names),
    ],
    openStep: callFunction(names.openStep, openStepParameters),
    settleStep: callFunction(names.settleStep, settleStepParameters),
    exchangeHolds: callFunction(names.exchangeHolds, exchangeHoldsParameters),
  };
}
