import { schemaVersion } from "@tollgate/store-sql";
import { assignParameters, assignSession, commonLength, findSession } from "./assigning.ts";
import { callFunction, type FunctionParameters } from "./function-text.ts";
import { exchangeHolds, exchangeHoldsParameters, settleHolds, takeHolds } from "./holding.ts";
import { openStep, openStepParameters, openSteps } from "./opening.ts";
import { settleStep, settleStepParameters, settleSteps } from "./settling.ts";

/** The functions of this release's schema. */
export interface Functions {
  /** The statements that make them. */
  readonly create: readonly string[];
  /** The statement that calls it. */
  readonly findSession: string;
  readonly openSteps: TogetherCall;
  readonly settleSteps: TogetherCall;
  /** The statement that calls it. */
  readonly exchangeHolds: string;
}

/** A call that is made for several at once, each with all parameters. */
export interface TogetherCall {
  readonly parameters: FunctionParameters;
  /** The statement for so many. */
  readonly statement: (count: number) => string;
}

/** Their names carry the schema's version: processes of two releases may work side by side while one replaces the other. */
export function createFunctions(schema: string): Functions {
  const named = (name: string): string => `${schema}.${name}_v${schemaVersion}`;
  const names = {
    openStep: named("open_step"),
    settleStep: named("settle_step"),
    assignSession: named("assign_session"),
    findSession: named("find_session"),
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
      findSession(names.findSession, names.commonLength),
      openStep(names.openStep, names),
      settleStep(names.settleStep, names),
    ],
    findSession: callFunction(names.findSession, assignParameters),
    openSteps: {
      parameters: openStepParameters,
      statement: keptByCount((count) => openSteps(count, names)),
    },
    settleSteps: {
      parameters: settleStepParameters,
      statement: keptByCount((count) => settleSteps(count, names)),
    },
    exchangeHolds: callFunction(names.exchangeHolds, exchangeHoldsParameters),
  };
}

function keptByCount(write: (count: number) => string): (count: number) => string {
  const kept = new Map<number, string>();
  return (count) => {
    const statement = kept.get(count) ?? write(count);
    kept.set(count, statement);
    return statement;
  };
}
