import { type UsageHour, usageDetails } from "@tollgate/core/store";
import { describeRow } from "./describe-row.ts";

/** The rows of hourly sums. */
export const usageRows = describeRow<UsageHour>({
  organizationId: "text",
  detail: usageDetails,
  hour: "integer",
  id: "text",
  names: "text",
  figures: "bytes",
});
