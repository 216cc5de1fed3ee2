import type { HostCaller } from "../contracts/authenticate.ts";
import { requireId } from "../domain/opaque-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { requireClass, requireClasses, requireModels } from "./key-arguments.ts";

/** A caller as the host named it, checked; null where it says nothing. */
export interface NamedCaller {
  readonly organizationId: string;
  readonly userId: string;
  readonly label: string;
  readonly source: string;
  readonly defaultDataClass: string | null;
  readonly minimumDataClass: string | null;
  readonly models: readonly string[] | null;
}

/**
 * Reads a caller, and keeps nothing of the object that could change later.
 * @throws GatewayError `invalid_argument`, naming the member at fault
 */
export function readCaller(written: HostCaller, dataClasses: readonly string[]): NamedCaller {
  if (typeof written !== "object" || written === null)
    throw new GatewayError("invalid_argument", "A caller is an object that names who calls.");
  const { source, models } = written;
  return {
    organizationId: requireId("organizationId", written.organizationId),
    userId: requireId("userId", written.userId),
    label: requireId("label", written.label),
    source: source === undefined ? "api" : requireId("source", source),
    ...classesOf(written, dataClasses),
    models: models === undefined ? null : requireModels(models),
  };
}

function classesOf(
  { defaultDataClass, minimumDataClass }: HostCaller,
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
