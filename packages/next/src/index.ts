export { type NextHandlers, type NextOptions, toNextHandlers } from "./to-next-handlers.ts";
