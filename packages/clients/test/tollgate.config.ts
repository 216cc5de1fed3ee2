import { gatewayOptions } from "./gateway-options.ts";

const upstream = process.env["TEST_UPSTREAM"];
const database = process.env["TEST_DATABASE"];
if (upstream === undefined || database === undefined) {
  throw new Error("TEST_UPSTREAM and TEST_DATABASE say where the upstream and the database are");
}

export default gatewayOptions({ upstream, database });
