/** Given as `organizationId`, reads across all organizations: the one deliberate way to. */
export const everyOrganization: unique symbol = Symbol.for("tollgate.everyOrganization");

/** Whose records to read: one organization's, or everyone's. */
export interface OrganizationScope {
  readonly organizationId: string | typeof everyOrganization;
}
