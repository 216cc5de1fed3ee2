export { type ExpressOptions, type Middleware, tollgate } from "./tollgate.ts";
