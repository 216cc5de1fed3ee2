/** The schemas of what is given to Tollgate as data, and the same as JSON Schemas for editors and other languages. */
export { administrationSchemas } from "./administration/schemas.ts";
export { budgetSchema } from "./budgets/schema.ts";
export type { Problem } from "./errors/gateway-error.ts";
export { type JsonSchema, jsonSchemaOf } from "./input/json-schema.ts";
export {
  type OptionalMember,
  pathOf,
  problemAt,
  type ReadOptions,
  type ReadResult,
  read,
  type Schema,
  tryRead,
} from "./input/read.ts";
export { duration, milliseconds, text, usd, wholeNumber } from "./input/values.ts";
export * as z from "./input/z.ts";
export { type GatewaySettings, gatewaySettings, gatewaySettingsSchema } from "./options-schema.ts";
export { rulePolicySchema } from "./policy/schema.ts";
export {
  billingSchema,
  modelOptions,
  priceTableSchema,
  stateOptions,
} from "./routing/model-schema.ts";
export { chatCompletionsRequestSchema, responsesRequestSchema } from "./wire/request-schemas.ts";
