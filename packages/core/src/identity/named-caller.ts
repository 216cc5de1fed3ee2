import type { HostCaller } from "../contracts/authenticate.ts";
import { read } from "../input/read.ts";
import { dataClassName, modelPatterns, opaqueId } from "../input/values.ts";
import * as z from "../input/z.ts";
import { requireClass, requireClasses } from "./key-arguments.ts";

/** A validated caller named by the host. Members that it left out are null. */
export interface NamedCaller {
  readonly organizationId: string;
  readonly userId: string;
  readonly label: string;
  readonly source: string;
  readonly defaultDataClass: string | null;
  readonly minimumDataClass: string | null;
  readonly models: readonly string[] | null;
}

const callerSchema = z.strictObject({
  organizationId: opaqueId,
  userId: opaqueId,
  label: opaqueId,
  source: z.exactOptional(opaqueId),
  defaultDataClass: z.exactOptional(dataClassName),
  minimumDataClass: z.exactOptional(dataClassName),
  models: z.exactOptional(z.nullable(modelPatterns)),
});

/**
 * Reads a caller into a new object, so later changes to the original have no effect.
 * @throws GatewayError `invalid_argument`, naming the invalid member
 */
export function readCaller(written: HostCaller, dataClasses: readonly string[]): NamedCaller {
  const {
    organizationId,
    userId,
    label,
    source = "api",
    models = null,
    ...classes
  } = read(callerSchema, written);
  return {
    organizationId,
    userId,
    label,
    source,
    ...classesOf(classes, dataClasses),
    models,
  };
}

function classesOf(
  { defaultDataClass, minimumDataClass }: Pick<HostCaller, "defaultDataClass" | "minimumDataClass">,
  dataClasses: readonly string[],
): Pick<NamedCaller, "defaultDataClass" | "minimumDataClass"> {
  if (defaultDataClass !== undefined && minimumDataClass !== undefined)
    return requireClasses(dataClasses, { defaultDataClass, minimumDataClass });
  const read = (name: string, value: string | undefined): string | null =>
    value === undefined ? null : requireClass(dataClasses, name, value);
  return {
    defaultDataClass: read("defaultDataClass", defaultDataClass),
    minimumDataClass: read("minimumDataClass", minimumDataClass),
  };
}
