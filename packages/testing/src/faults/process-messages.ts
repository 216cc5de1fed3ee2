/** A message from a test to a gateway process. */
export type ProcessCommand =
  | { readonly type: "start"; readonly settings: unknown }
  | {
      readonly type: "command";
      readonly id: number;
      readonly name: string;
      readonly value: unknown;
    }
  | { readonly type: "release"; readonly barrier: string };

/** A message from a gateway process to its test. */
export type ProcessEvent =
  | { readonly type: "listening"; readonly url: string }
  | { readonly type: "reached"; readonly barrier: string }
  | { readonly type: "answered"; readonly id: number; readonly value: unknown }
  | { readonly type: "failed"; readonly id: number; readonly message: string };

/** Whether a value from the channel is one of these messages. */
export function isMessage<Message extends { readonly type: string }>(
  value: unknown,
  types: Readonly<Record<Message["type"], true>>,
): value is Message {
  const type: unknown = typeof value === "object" && value !== null && Reflect.get(value, "type");
  return typeof type === "string" && Object.hasOwn(types, type);
}
