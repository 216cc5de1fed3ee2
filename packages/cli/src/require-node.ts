import { CommandError } from "./failure.ts";

/** The minimum release of each supported major version of Node, as in `engines` of package.json. */
const minVersions: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [22, 22, 3],
  [24, 15, 0],
];

/** Rejects an old Node with a clear message. @throws CommandError */
export function requireNode(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const first = minVersions.find(([line]) => line === major);
  const isNewer = first === undefined && major > 24;
  const isInLine =
    first !== undefined && (minor > first[1] || (minor === first[1] && patch >= first[2]));
  if (isNewer || isInLine) return;
  throw new CommandError(
    `Tollgate requires Node 22.22.3 or a later 22, or Node 24.15 or later: this is ${version}`,
  );
}
