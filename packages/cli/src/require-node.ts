import { CommandError } from "./failure.ts";

/** The first release of each line of Node that will do, as `engines` of package.json says it. */
const minVersions: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [22, 22, 3],
  [24, 15, 0],
];

/** Says in one sentence what an older Node would say as a missing function. @throws CommandError */
export function requireNode(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const first = minVersions.find(([line]) => line === major);
  const isNewer = first === undefined && major > 24;
  const isInLine =
    first !== undefined && (minor > first[1] || (minor === first[1] && patch >= first[2]));
  if (isNewer || isInLine) return;
  throw new CommandError(
    `Tollgate needs Node 22.22.3 or newer within 22, or 24.15 or newer: this is ${version}`,
  );
}
