import { hourDetails, type UsageHour } from "@tollgate/core/store";
import { describeRow } from "./describe-row.ts";

/** The rows of hourly sums. */
export const usageRows = describeRow<UsageHour>({
  organizationId: "text",
  detail: hourDetails,
  hour: "integer",
  id: "text",
  names: "text",
  figures: "bytes",
});
