import { type EvidenceLeaf, leafHash, type Step } from "@tollgate/core/store";
import type { StoreDump } from "./dump.ts";
import { factsOf, leafFacts } from "./leaf-facts.ts";

/**
 * Checks that each leaf's hash matches its meta and each id is unique. Each Step must have its decision, one opening
 * leaf, one leaf per further attempt, and one settlement leaf that matches the Step.
 */
export function checkEvidence(dump: StoreDump): readonly string[] {
  const { leaves, steps } = dump;
  const ids = new Set<string>();
  const problems = leaves.flatMap((leaf) => {
    const isTwice = ids.has(leaf.id);
    ids.add(leaf.id);
    return [
      ...(isTwice ? [`Leaf ${leaf.id}: the id is not unique`] : []),
      ...(leafHash(leaf.meta).equals(leaf.hash)
        ? []
        : [`Leaf ${leaf.id}: its hash doesn't match its meta`]),
    ];
  });
  const ofStep = Map.groupBy(leaves, (leaf) => String(leafFacts(leaf)["step"]));
  const decided = new Set(dump.decisions.map(({ id }) => id));
  return [
    ...problems,
    ...steps.flatMap((step) => stepProblems(step, ofStep.get(step.id) ?? [])),
    ...steps
      .flatMap(({ attempts }) => attempts)
      .filter(({ decisionId }) => !decided.has(decisionId))
      .map(({ decisionId }) => `Decision ${decisionId}: it is not recorded`),
  ];
}

function stepProblems(step: Step, leaves: readonly EvidenceLeaf[]): readonly string[] {
  const count = (kind: EvidenceLeaf["kind"]): number =>
    leaves.filter((leaf) => leaf.kind === kind).length;
  const expected = [
    ["step.opened", 1],
    ["attempt.opened", step.attempts.length - 1],
    ["step.settled", step.outcome === null ? 0 : 1],
  ] as const;
  const settled = leaves.find(({ kind }) => kind === "step.settled");
  return [
    ...expected
      .filter(([kind, wanted]) => count(kind) !== wanted)
      .map(([kind, wanted]) => `Step ${step.id}: ${count(kind)} leaves ${kind}, not ${wanted}`),
    ...(settled === undefined || matchesStep(step, settled)
      ? []
      : [`Step ${step.id}: its settlement leaf doesn't match the Step`]),
  ];
}

function matchesStep(step: Step, leaf: EvidenceLeaf): boolean {
  const { outcome, attempt } = leafFacts(leaf);
  const { number, costNanoUsd, usage } = factsOf(attempt);
  const last = step.attempts.at(-1);
  return (
    outcome === step.outcome &&
    number === last?.number &&
    costNanoUsd === last?.end?.costNanoUsd &&
    factsOf(usage)["totalTokens"] === last?.end?.usage.totalTokens
  );
}
