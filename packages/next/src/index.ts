export { oneGateway } from "./one-gateway.ts";
export { type NextHandlers, type NextOptions, toNextHandlers } from "./to-next-handlers.ts";
