/** An opaque id of the host application: 1 to 255 characters of well-formed text without control characters. */
export function isOpaqueId(id: unknown): id is string {
  return (
    typeof id === "string" &&
    id !== "" &&
    id.length <= 255 &&
    id.isWellFormed() &&
    !/\p{Cc}/u.test(id)
  );
}
