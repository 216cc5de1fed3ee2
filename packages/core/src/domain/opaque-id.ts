import { GatewayError } from "../errors/gateway-error.ts";

/** An opaque id of the host application: 1 to 255 characters of well-formed text without control characters. */
export function requireId(name: string, id: unknown): string {
  if (
    typeof id === "string" &&
    id !== "" &&
    id.length <= 255 &&
    id.isWellFormed() &&
    !/\p{Cc}/u.test(id)
  )
    return id;
  throw new GatewayError(
    "invalid_argument",
    `${name} must be 1 to 255 characters without control characters.`,
    {
      param: name,
    },
  );
}
