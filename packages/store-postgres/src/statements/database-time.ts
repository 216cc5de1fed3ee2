/** What the server's clock says, in milliseconds; not when the transaction began, which may have waited since. */
export const databaseTime =
  "SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) AS now";
