import nodeModule, { type ResolveFnOutput } from "node:module";
import { pathToFileURL } from "node:url";
import { CommandError, messageOf } from "../failure.ts";

/**
 * Imports the default export of a module. If `@tollgate/*` isn't installed next to it, the module gets the command line's own
 * packages, so a configuration mounted anywhere works with a global install.
 * @throws CommandError if it can't be loaded
 */
export async function importDefault(file: string): Promise<unknown> {
  const { href } = pathToFileURL(file);
  resolveFromHere(href);
  try {
    const module: { readonly default?: unknown } = await import(href);
    return await module.default;
  } catch (thrown) {
    throw new CommandError(`${file} could not be loaded: ${messageOf(thrown)}`);
  }
}

const own = /^@tollgate\/[a-z]/;

/** The hook stays: a configuration may import more later. Runtimes other than Node may lack hooks. */
function resolveFromHere(configuration: string): void {
  nodeModule.registerHooks?.({
    resolve(specifier, context, next) {
      if (specifier === configuration) return asModule(next(specifier, context));
      try {
        return next(specifier, context);
      } catch (thrown) {
        if (!own.test(specifier) || !isNotFound(thrown)) throw thrown;
        return orThrow(thrown, () => next(specifier, { ...context, parentURL: import.meta.url }));
      }
    },
  });
}

/** Treats TypeScript outside any package as a module; otherwise Node prints a warning before it detects that. */
function asModule(resolved: ResolveFnOutput): ResolveFnOutput {
  const isTyped = resolved.url.endsWith(".ts") && resolved.format == null;
  return isTyped ? { ...resolved, format: "module-typescript" } : resolved;
}

/** If the command line doesn't have the package either, the error is the one from the file's own folder. */
function orThrow(first: unknown, resolve: () => ResolveFnOutput): ResolveFnOutput {
  try {
    return resolve();
  } catch {
    throw first;
  }
}

function isNotFound(thrown: unknown): boolean {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : null;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
