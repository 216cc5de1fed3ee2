/** An error code over HTTP: its status, its type and whether a retry can help. */
interface ErrorShape {
  readonly status: number;
  readonly type: string;
  /** Codes of the administration: the status in the admin API. To clients they would be an internal error. */
  readonly admin?: number;
  /** Sent as `x-should-retry`. Absent if the client's own rule for the status is right. */
  readonly retry?: boolean;
}

const invalid = (status: number): ErrorShape => ({
  status,
  type: "invalid_request_error",
  retry: false,
});

const ofAdministration = <const Status extends number>(admin: Status) =>
  ({ status: 500, type: "server_error", admin }) as const;

/** Every error code, with its status and type: the one place to change them. */
export const errorShapes = {
  missing_api_key: invalid(401),
  invalid_api_key: invalid(401),
  unauthenticated: invalid(401),
  missing_required_parameter: invalid(400),
  unknown_parameter: invalid(400),
  unsupported_parameter: invalid(400),
  unsupported_value: invalid(400),
  invalid_type: invalid(400),
  invalid_value: invalid(400),
  invalid_json: invalid(400),
  invalid_data_class: invalid(400),
  data_class_below_floor: invalid(400),
  connection_required: invalid(400),
  previous_response_not_found: invalid(400),
  upstream_rejected: invalid(400),
  model_not_found: invalid(404),
  response_not_found: invalid(404),
  item_not_found: invalid(404),
  session_not_found: invalid(404),
  turn_not_found: invalid(404),
  not_found: invalid(404),
  method_not_allowed: invalid(405),
  request_too_large: invalid(413),
  unsupported_media_type: invalid(415),
  idempotency_in_progress: { status: 409, type: "idempotency_error", retry: true },
  idempotency_interrupted: { status: 409, type: "idempotency_error", retry: false },
  idempotency_not_kept: { status: 409, type: "idempotency_error", retry: false },
  idempotency_mismatch: { status: 422, type: "idempotency_error", retry: false },
  policy_denied: { status: 403, type: "permission_error", retry: false },
  price_unknown: { status: 403, type: "permission_error", retry: false },
  budget_exceeded: { status: 429, type: "insufficient_quota", retry: false },
  rate_limit_exceeded: { status: 429, type: "rate_limit_error" },
  upstream_error: { status: 502, type: "server_error", retry: true },
  connection_unavailable: { status: 503, type: "server_error", retry: true },
  authentication_unavailable: { status: 503, type: "server_error", retry: true },
  evidence_unavailable: { status: 503, type: "server_error", retry: true },
  overloaded: { status: 503, type: "server_error", retry: true },
  internal_error: { status: 500, type: "server_error" },
  invalid_configuration: ofAdministration(409),
  invalid_argument: ofAdministration(400),
  key_not_found: ofAdministration(404),
  connection_not_found: ofAdministration(404),
  key_not_live: ofAdministration(409),
  budget_not_found: ofAdministration(404),
  budget_exists: ofAdministration(409),
  rate_limit_exists: ofAdministration(409),
  precondition_failed: ofAdministration(412),
  precondition_required: ofAdministration(428),
  rate_limit_not_found: ofAdministration(404),
  decision_not_found: ofAdministration(404),
  step_not_found: ofAdministration(404),
  organization_not_found: ofAdministration(404),
  admin_token_not_found: ofAdministration(404),
  admin_unauthenticated: ofAdministration(401),
  admin_forbidden: ofAdministration(403),
  cross_origin_refused: ofAdministration(403),
  administration_unavailable: ofAdministration(503),
} as const satisfies Record<string, ErrorShape>;

/** The code of a GatewayError. */
export type ErrorCode = keyof typeof errorShapes;

/** The error codes with a status in the admin API. */
export function codesOfAdminStatus(status: number): readonly string[] {
  return Object.entries<ErrorShape>(errorShapes).flatMap(([code, shape]) =>
    (shape.admin ?? shape.status) === status ? code : [],
  );
}

/** Whether a text is the code of a GatewayError. */
export function isErrorCode(text: unknown): text is ErrorCode {
  return typeof text === "string" && Object.hasOwn(errorShapes, text);
}
