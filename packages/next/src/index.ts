export { type NextHandlers, toNextHandlers } from "./to-next-handlers.ts";
