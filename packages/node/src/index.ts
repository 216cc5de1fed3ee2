export { type NodeHandlerOptions, requireHandlerOptions } from "./handler-options.ts";
export type { HealthCheck, Readiness } from "./health.ts";
export { send, sendAnswer } from "./send-answer.ts";
export { type RunningServer, type ServeOptions, serve, serveMembers } from "./serve.ts";
export { defaultServerLimits, type ServerLimits } from "./server-limits.ts";
export { type AnswerHandler, type FetchHandler, toNodeHandler } from "./to-node-handler.ts";
export { type IncomingRequest, type NodeRequest, toRequest } from "./to-request.ts";
