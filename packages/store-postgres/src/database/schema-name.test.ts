import {
  administrationStatements,
  checkpointStatements,
  holdStatements,
  leaseStatements,
  openStepStatements,
  responseStatements,
  stepStatements,
  transcriptStatements,
} from "@tollgate/store-sql";
import { expect, it } from "vitest";
import { createQualify } from "./schema-name.ts";

const qualify = createQualify("mine");

it("adds the schema to every table and to nothing else", () => {
  expect(qualify("SELECT id FROM sessions s JOIN turns ON true")).toBe(
    "SELECT id FROM mine.sessions s JOIN mine.turns ON true",
  );
  expect(qualify("INSERT INTO steps (turns) SELECT sessions.id FROM chain")).toBe(
    "INSERT INTO mine.steps (turns) SELECT sessions.id FROM chain",
  );
});

it("adds the schema to every table of the shared statements", () => {
  const statements = {
    ...administrationStatements,
    ...checkpointStatements,
    ...holdStatements,
    ...leaseStatements,
    ...openStepStatements,
    ...transcriptStatements,
    ...responseStatements,
    ...stepStatements,
  };
  const names =
    "api_keys|sessions|steps|turns|leaves|sealed_leaves|checkpoints|holds|decisions|responses|budgets|processes";
  const bare = new RegExp(`(?:FROM|JOIN|INTO|UPDATE)\\s+(?:${names})\\b`);
  for (const [name, text] of Object.entries(statements))
    expect(qualify(text), name).not.toMatch(bare);
});
