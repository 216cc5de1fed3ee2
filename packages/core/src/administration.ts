/** The parts of core that serve and call the administration over HTTP. Applications use `@tollgate/admin`. */
export { etagOf, requireMatch } from "./administration/etag.ts";
export {
  asReplayed,
  createsSecret,
  isReplayed,
} from "./administration/idempotency.ts";
export { type List, listOf, type Page, type Paging, pagesById } from "./administration/list.ts";
export {
  activityDimensionsSchema,
  administrationSchemas,
  dimensionsSchema,
  exportOptions,
  maxTranscriptMessages,
  pagingSchema,
  seriesOptions,
} from "./administration/schemas.ts";
export { toRateLimit } from "./budgets/rate-limits.ts";
export { toBudget } from "./budgets/read-budget.ts";
export { type AdminRole, adminRoles } from "./domain/admin-token.ts";
export { changeKinds } from "./domain/change-kind.ts";
export { defaultLimits, type Limits } from "./domain/limits.ts";
export { codesOfAdminStatus, isErrorCode } from "./errors/codes.ts";
export { administrationFailure, whereOf } from "./errors/gateway-error.ts";
export { type GatewayResponse, toResponse } from "./http/gateway-response.ts";
export { bearerToken, requireSmallHeaders } from "./http/headers.ts";
export { pathAfter, queryOf } from "./http/path-after-v1.ts";
export { type BodyReading, type BodyRoom, parseBody, readBody } from "./http/read-body.ts";
export { toRequest } from "./http/to-request.ts";
export { orTimeout } from "./kernel/bounded-wait.ts";
