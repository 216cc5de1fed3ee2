import { everyWorkspace } from "../src/repository.ts";

/** Packages that still break a rule. */
const pending = {
  names: "store-postgres",
  sizes: "store-postgres store-sql",
  words: "core store-postgres",
};

/** The workspaces that a rule holds for. */
export const enforcedFolders = (rule: keyof typeof pending): readonly string[] => {
  const names = pending[rule].split(" ");
  return everyWorkspace()
    .map(({ directory }) => directory)
    .filter((directory) => !names.includes(directory.replace(/^(packages|bench)\//, "")));
};
