/** Pass it as `organizationId` to read across all organizations. Nothing else does, so it never happens by accident. */
export const everyOrganization: unique symbol = Symbol.for("tollgate.everyOrganization");

/** Whose records to read: one organization's, or everyone's. */
export interface OrganizationScope {
  readonly organizationId: string | typeof everyOrganization;
}
