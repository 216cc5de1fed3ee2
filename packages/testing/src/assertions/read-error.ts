/** The error in an answer. */
export interface AnswerError {
  readonly code: string | null;
  readonly message: string;
}

/** Reads the error of an answer without consuming its body. `code` is null if the answer is not an error. */
export async function readError(answer: Response): Promise<AnswerError> {
  const body: unknown = await answer
    .clone()
    .json()
    .catch(() => null);
  const error = member(body, "error");
  const [code, message] = [member(error, "code"), member(error, "message")];
  return {
    code: typeof code === "string" ? code : null,
    message: typeof message === "string" ? message : "",
  };
}

/** Describes an answer for the message of a failed assertion. */
export function inWords({ status }: Response, { code, message }: AnswerError): string {
  return code === null ? `answered ${status}` : `answered ${status} ${code}: ${message}`;
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
