import { gatewayOptions } from "./gateway-options.ts";

const upstream = process.env["TEST_UPSTREAM"];
const database = process.env["TEST_DATABASE"];
if (upstream === undefined || database === undefined) {
  throw new Error(
    "Set TEST_UPSTREAM and TEST_DATABASE to the addresses of the upstream and the database",
  );
}

export default gatewayOptions({ upstream, database });
