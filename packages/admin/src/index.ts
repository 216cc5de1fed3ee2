/** The admin API of a gateway over HTTP, and its typed client. */
export { type AdminRole, etagOf, isReplayed } from "@tollgate/core/administration";
export {
  type AdminFailure,
  type AdminHandler,
  type AdminOptions,
  adminHandler,
} from "./admin-handler.ts";
export type { AdminGrant } from "./grant.ts";
export type { RemoteOptions } from "./http-client.ts";
export { openApiDocument } from "./open-api.ts";
export { remoteAdministration } from "./remote-administration.ts";
export { type AuthenticateAdmin, tokenSignIn } from "./sign-in.ts";
