import nodeModule, { type ResolveFnOutput } from "node:module";
import { pathToFileURL } from "node:url";
import { CommandError, messageOf } from "../failure.ts";

/**
 * What a module exports by default. Where nothing is installed next to it, `@tollgate/*` is what the command line itself
 * uses, so that a configuration mounted anywhere works with a global install.
 * @throws CommandError when it can't be loaded
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

/** Stays in place: a configuration may import more when it is used. Other runtimes than Node may lack the hook. */
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

/** TypeScript outside of any package is a module here; Node would warn before it finds that out. */
function asModule(resolved: ResolveFnOutput): ResolveFnOutput {
  const isTyped = resolved.url.endsWith(".ts") && resolved.format == null;
  return isTyped ? { ...resolved, format: "module-typescript" } : resolved;
}

/** What isn't here either is missed where it was asked for. */
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
