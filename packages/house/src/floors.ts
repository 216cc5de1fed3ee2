import { posix } from "node:path";
import type { SourceFile } from "./source-file.ts";

interface Floor {
  readonly rooms: readonly string[];
  readonly floor: number;
  /** The highest floor that its rooms may import from. */
  readonly mayImport: number;
}

/** The floors of core, from the top. Imports go down, or stay in the room; rooms of one floor never meet. */
const floors: readonly Floor[] = [
  { floor: 7, mayImport: 6, rooms: ["doors"] },
  { floor: 6, mayImport: 5, rooms: ["endpoints", "administration"] },
  { floor: 5, mayImport: 3, rooms: ["pipeline"] },
  { floor: 4, mayImport: 1, rooms: ["wire", "http"] },
  {
    floor: 3,
    mayImport: 2,
    rooms: [
      "identity",
      "sensitivity",
      "routing",
      "policy",
      "sessions",
      "budgets",
      "connections",
      "limits",
      "responses",
      "attempts",
      "evidence",
    ],
  },
  { floor: 2, mayImport: 1, rooms: ["contracts", "input"] },
  { floor: 1, mayImport: 0, rooms: ["domain"] },
  { floor: 0, mayImport: -1, rooms: ["kernel", "errors"] },
];

const source = "packages/core/src/";

function roomOf(path: string): string {
  const [room, ...rest] = path.slice(source.length).split("/");
  return rest.length === 0 || room === undefined ? "doors" : room;
}

const floorOf = (room: string): Floor | undefined =>
  floors.find(({ rooms }) => rooms.includes(room));

/** Which imports of a file of core climb, or cross to a neighbour. `import type` counts like any other. */
export function floorProblems(file: SourceFile): readonly string[] {
  const room = roomOf(file.path);
  const own = floorOf(room);
  if (own === undefined) return [`${file.path}: the room ${room}/ stands on no floor`];
  return file.imports
    .filter((specifier) => specifier.startsWith("."))
    .flatMap((specifier) => {
      const target = posix.join(posix.dirname(file.path), specifier);
      if (!target.startsWith(source)) return [`${file.path} leaves core: ${specifier}`];
      const targetRoom = roomOf(target);
      const floor = floorOf(targetRoom)?.floor ?? Number.POSITIVE_INFINITY;
      if (targetRoom === room || floor <= own.mayImport) return [];
      return [`${file.path} (${room}, floor ${own.floor}) may not import ${specifier}`];
    });
}
