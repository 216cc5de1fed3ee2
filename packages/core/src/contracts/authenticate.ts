/** A caller that the host application has authenticated: a signed-in user, or one of its own jobs. It needs no secret. */
export interface HostCaller {
  readonly organizationId: string;
  readonly userId: string;
  /** Shown in activity. Calls with the same organization, user and label belong together, like calls with one API key. */
  readonly label: string;
  /** Where the call comes from, for Sessions, policy and activity; 1 to 255 characters. Default `api`. */
  readonly source?: string | undefined;
  /** The data class of requests that name none. Default: that of the key's record. */
  readonly defaultDataClass?: string | undefined;
  /** The least sensitive class a request is treated as. Never below that of the key's record, which is the default. */
  readonly minimumDataClass?: string | undefined;
  /** Model patterns the caller is limited to, in addition to those of the key's record. Default: no further limit. */
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
