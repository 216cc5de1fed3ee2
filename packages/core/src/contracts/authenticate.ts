/** A caller for whom the host application vouches: its signed-in user, or a job of its own. It needs no secret. */
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
 * Says for whom a request is, by whatever the host application signs its users in with: a cookie, a token of its own.
 * Null or undefined where it knows nobody; the API key is looked at then. It throws a GatewayError `unauthenticated` for a
 * sign-in that is no longer good, such as an expired token: the caller gets 401 with its message, and no retry helps.
 * Anything else it throws is 503 `authentication_unavailable`. It is asked once for each request and waited for up to ten
 * seconds. It must not read the body, which is the gateway's.
 */
export type Authenticate = (
  request: Request,
) => HostCaller | null | undefined | Promise<HostCaller | null | undefined>;
