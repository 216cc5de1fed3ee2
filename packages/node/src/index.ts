export type { AnswerHandler, FetchHandler } from "./handler.ts";
export { type NodeHandlerOptions, requireHandlerOptions } from "./handler-options.ts";
export type { HealthCheck, Readiness } from "./health.ts";
export { toNodeHandler } from "./node-handler.ts";
export { send, sendAnswer } from "./send.ts";
export { type RunningServer, type ServeOptions, serve, serveMembers } from "./serve.ts";
export { defaultServerLimits, type ServerLimits } from "./server-limits.ts";
export { type IncomingRequest, type NodeRequest, toRequest } from "./to-request.ts";
