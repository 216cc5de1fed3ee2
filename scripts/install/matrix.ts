/** A version of Node or TypeScript to use in the empty project. */
export interface Tool {
  /** Its name in the report: `node 24.21.0`. */
  readonly name: string;
  /** Its folder in the project's node_modules; null for the Node that runs this script. */
  readonly alias: string | null;
  /** The version that package.json requests under this alias. */
  readonly request: string;
}

const node = (version: string): Tool => ({
  name: `node ${version}`,
  alias: `node-${version}`,
  request: `npm:node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}@${version}`,
});

const typescript = (version: string): Tool => ({
  name: `typescript ${version}`,
  alias: `typescript-${version}`,
  request: `npm:typescript@${version}`,
});

/** Every supported Node and TypeScript. */
export const everyNode: readonly Tool[] = ["22.22.3", "24", "26"].map(node);
export const everyTypescript: readonly Tool[] = ["5.9", "6", "7"].map(typescript);

/** The Node of this checkout, for checks that need only one pair. */
export const thisNode: readonly Tool[] = [
  { name: `node ${process.versions.node}`, alias: null, request: "" },
];
export const newestTypescript: readonly Tool[] = everyTypescript.slice(-1);
