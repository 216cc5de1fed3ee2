import { everyWorkspace } from "../src/repository.ts";

/** Packages that still break a rule. */
const pending = {
  names: "core faults measures store-postgres testing",
  sizes: "faults house measures provider-ai-sdk store-postgres store-sql",
  words:
    "cli clients core express fastify faults measures next node provider-ai-sdk provider-openai provider-sim store-postgres store-sql testing",
};

/** The workspaces that a rule holds for. */
export const enforcedFolders = (rule: keyof typeof pending): readonly string[] => {
  const names = pending[rule].split(" ");
  return everyWorkspace()
    .map(({ directory }) => directory)
    .filter((directory) => !names.includes(directory.replace(/^(packages|bench)\//, "")));
};
