import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

/** A data folder and the command for its server. */
export interface Cluster {
  readonly folder: string;
  readonly program: string;
  readonly parameters: readonly string[];
  readonly port: number;
  readonly environment: RunEnvironment;
}

interface RunEnvironment {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
}

const relaxed = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/** Creates an empty data folder in the system's folder for temporary files. */
export async function createCluster({
  fsync,
  scope,
}: {
  readonly fsync: boolean;
  readonly scope: string;
}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-postgres-"));
  const programs = unpackServer(folder, scope);
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  const environment = {
    cwd: folder,
    env: { LC_ALL: "C", TZ: "UTC" },
    ...giveToNobody(folder, data),
  };
  initialise(join(programs, "initdb"), data, environment);
  const port = await freePort();
  const settings = [
    ...(fsync ? [] : relaxed),
    "max_connections=80",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
  ];
  const parameters = ["-D", data, "-p", String(port), ...settings.flatMap((one) => ["-c", one])];
  return { folder, program: join(programs, "postgres"), parameters, port, environment };
}

/** PostgreSQL refuses to run as root, so root gives the folder to the user `nobody`. */
function giveToNobody(folder: string, data: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (kind: string): number => Number(execFileSync("id", [kind, "nobody"]).toString());
  const [uid, gid] = [idOf("-u"), idOf("-g")];
  chmodSync(folder, 0o755);
  for (const one of [folder, data]) chownSync(one, uid, gid);
  return { uid, gid };
}

function initialise(program: string, data: string, environment: RunEnvironment): void {
  const parameters = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"];
  const { status, error, stderr } = spawnSync(program, [...parameters, "--no-sync"], {
    ...environment,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`initdb failed: ${error?.message ?? stderr}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/**
 * Takes the server out of its npm package, so another user can run it, and creates the links between its libraries,
 * which the package leaves to an install script. Returns the folder of its programs.
 */
function unpackServer(folder: string, scope: string): string {
  const copy = join(folder, "native");
  placeFiles(packagedServer(scope), copy);
  const list = join(copy, "pg-symlinks.json");
  if (existsSync(list)) {
    for (const { source, target } of linksOf(JSON.parse(readFileSync(list, "utf8")))) {
      const at = join(folder, target);
      if (!existsSync(at)) symlinkSync(relative(dirname(target), source), at);
    }
  }
  return join(copy, "bin");
}

/** Links the files of a folder, which saves copying 60 MB, or copies them to another disk. */
function placeFiles(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) placeFiles(source, target);
    else
      try {
        linkSync(source, target);
      } catch {
        cpSync(source, target, { verbatimSymlinks: true });
      }
  }
}

function packagedServer(scope: string): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `${scope}/${platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (cause) {
    throw new Error(
      `These tests need PostgreSQL: install the npm package ${name}, or name your own server.`,
      { cause },
    );
  }
}

interface Link {
  readonly source: string;
  readonly target: string;
}

function linksOf(list: unknown): readonly Link[] {
  if (Array.isArray(list) && list.every(isLink)) return list;
  throw new TypeError("pg-symlinks.json must be a list of links.");
}

function isLink(one: unknown): one is Link {
  return (
    typeof one === "object" &&
    one !== null &&
    "source" in one &&
    "target" in one &&
    typeof one.source === "string" &&
    typeof one.target === "string"
  );
}
