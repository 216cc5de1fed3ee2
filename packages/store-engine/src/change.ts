import { type BudgetCounterKey, type EvidenceLeaf, GatewayError } from "@tollgate/core/store";
import type {
  CorrectionRecord,
  CounterMove,
  DecisionRecord,
  ErrorRecord,
  HoldRecord,
  PartRecord,
  ResponseRecord,
  SessionState,
  StepRecord,
  TurnRecord,
} from "./records.ts";

/** What a rule decided: the answer, and the rows to write for it. An empty change writes nothing. */
export interface Decision<Result> {
  readonly result: Result;
  readonly change: Change;
  /**
   * The answer where a counter has no room for what is taken by the time the change is written: nothing is written then,
   * and `left` is what there was. A driver that decides where it writes never needs it.
   */
  readonly resultIfOverLimit?: (counter: BudgetCounterKey, left: number) => Result;
}

/** Rows to write, all or none, in this order. A driver gives each change one number of the store's sequence. */
export type Change = readonly Operation[];

/** One row to write. A driver knows where it goes, and no rule. */
export type Operation =
  /** Among the open Steps too, as of this renewal of its process's lease. Comes first in its change. */
  | { readonly write: "insert step"; readonly row: StepRecord; readonly renewal: number }
  /** Another attempt runs. */
  | { readonly write: "update step"; readonly row: StepRecord }
  /** It ended, and is no open Step any more. */
  | { readonly write: "settle step"; readonly row: StepRecord }
  | { readonly write: "insert session"; readonly row: SessionState }
  | { readonly write: "update session"; readonly row: SessionState }
  /** Nothing where the organization has the id already. */
  | { readonly write: "insert turn"; readonly row: TurnRecord }
  | { readonly write: "insert part"; readonly row: PartRecord }
  | { readonly write: "insert error"; readonly row: ErrorRecord }
  /** Nothing where the organization has the id already. */
  | { readonly write: "insert decision"; readonly row: DecisionRecord }
  /** One that its decision did not find: where it is there by now, the decision is asked again. */
  | { readonly write: "claim decision"; readonly row: DecisionRecord }
  | { readonly write: "insert hold"; readonly row: HoldRecord }
  | { readonly write: "settle hold"; readonly row: HoldRecord }
  /** From 0 where there is none. */
  | { readonly write: "move counter"; readonly row: CounterMove }
  | { readonly write: "insert correction"; readonly row: CorrectionRecord }
  | { readonly write: "insert response"; readonly row: ResponseRecord }
  | { readonly write: "remove response"; readonly row: RowName }
  /** Built on another, or on none, with the messages of those between. */
  | {
      readonly write: "relink response";
      readonly row: RowName & Pick<ResponseRecord, "builtOn" | "inherited">;
    }
  /** Its Session, its transcript and its holds stay. */
  | { readonly write: "remove step"; readonly row: RowName }
  /** All content and salts of its parts and errors go; chain values and commitments stay. */
  | { readonly write: "erase session"; readonly row: RowName }
  /** Up to which update an organization's Sessions were looked at for erasure. */
  | {
      readonly write: "mark erased";
      readonly row: { readonly organizationId: string; readonly updated: number };
    }
  | { readonly write: "insert leaf"; readonly row: EvidenceLeaf };

/** A row by its organization and id. */
export interface RowName {
  readonly organizationId: string;
  readonly id: string;
}

/** A decision that changes nothing. */
export function unchanged<Result>(result: Result): Decision<Result> {
  return { result, change: [] };
}

/** What a driver throws instead of writing a Session or a response whose id its organization has already. */
export function idTakenError(noun: "new Session" | "stored response"): GatewayError {
  return new GatewayError("invalid_argument", `The id for a ${noun} is taken.`);
}
