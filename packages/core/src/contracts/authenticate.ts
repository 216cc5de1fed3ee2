/** A caller that the host application vouches for: its signed-in user, or a job of its own. It needs no secret. */
export interface HostCaller {
  readonly organizationId: string;
  readonly userId: string;
  /** Shown in activity. Calls of one organization, user and label belong together, as those of one API key do. */
  readonly label: string;
  /** Where the call comes from, for Sessions, policy and activity; 1 to 255 characters. Default `api`. */
  readonly source?: string | undefined;
  /** The class of requests that name none. Default: that of the key's record. */
  readonly defaultDataClass?: string | undefined;
  /** The floor. Default: that of the key's record, which it never goes below. */
  readonly minimumDataClass?: string | undefined;
  /** Model patterns the caller is limited to; default no limit but that of the key's record. */
  readonly models?: readonly string[] | null | undefined;
}

/**
 * Identifies a request's caller from the host application's own sign-in, such as a cookie or a token. It returns null or
 * undefined if it finds no caller; Tollgate then checks the API key. For a sign-in that is no longer valid, such as an
 * expired token, throw a GatewayError `unauthenticated`: the caller gets 401 with its message and shouldn't retry. Any
 * other error becomes 503 `authentication_unavailable`. Tollgate calls it once per request and waits up to ten seconds. It
 * must not read the body, which belongs to the gateway.
 */
export type Authenticate = (
  request: Request,
) => HostCaller | null | undefined | Promise<HostCaller | null | undefined>;
