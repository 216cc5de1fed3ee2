import type { StepCorrection } from "@tollgate/core";
import { parseUsd } from "@tollgate/core/provider";
import { type Command, InvalidArgumentError } from "commander";
import { wholeNumber } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { withGateway } from "../open-gateway.ts";
import { printRecord } from "../print.ts";

interface CorrectOptions {
  readonly organization: string;
  readonly reason: string;
  readonly attempt?: number;
  readonly costUsd?: number;
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly cachedTokens?: number;
  readonly reasoningTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly cacheWrite1hTokens?: number;
  readonly audioInputTokens?: number;
  readonly audioOutputTokens?: number;
  readonly imageInputTokens?: number;
  readonly imageOutputTokens?: number;
}

/** Adds `steps correct`. */
export function defineCorrection(noun: Command): void {
  noun
    .command("correct <id>")
    .description(
      "correct the usage or cost of an attempt of a settled Step, and keep the original record",
    )
    .requiredOption("--organization <id>", "the organization of the Step")
    .requiredOption("--reason <text>", "the reason, at most 255 characters")
    .option("--attempt <number>", "the number of the attempt (default: the last)", wholeNumber(1))
    .option("--cost-usd <amount>", "cost in US dollars, such as 0.0125", nanoUsd)
    .option("--prompt-tokens <count>", "tokens of the request", wholeNumber(0))
    .option("--completion-tokens <count>", "tokens of the answer", wholeNumber(0))
    .option("--cached-tokens <count>", "cached tokens of the request", wholeNumber(0))
    .option("--reasoning-tokens <count>", "reasoning tokens of the answer", wholeNumber(0))
    .option(
      "--cache-write-tokens <count>",
      "tokens of the request written to the cache",
      wholeNumber(0),
    )
    .option(
      "--cache-write-1h-tokens <count>",
      "written tokens that are cached for an hour",
      wholeNumber(0),
    )
    .option("--audio-input-tokens <count>", "audio tokens of the request", wholeNumber(0))
    .option("--audio-output-tokens <count>", "audio tokens of the answer", wholeNumber(0))
    .option("--image-input-tokens <count>", "image tokens of the request", wholeNumber(0))
    .option("--image-output-tokens <count>", "image tokens of the answer", wholeNumber(0))
    .action(correct);
}

async function correct(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<CorrectOptions>(command);
  const { config, json, actor, organization, reason, attempt, costUsd } = options;
  const correction: StepCorrection = {
    organizationId: organization,
    id,
    reason,
    actor,
    ...(attempt === undefined ? {} : { attempt }),
    ...(costUsd === undefined ? {} : { costNanoUsd: costUsd }),
    ...usageOf(options),
  };
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.steps.correct(correction)),
  );
}

const detailNames = [
  "cachedTokens",
  "reasoningTokens",
  "cacheWriteTokens",
  "cacheWrite1hTokens",
  "audioInputTokens",
  "audioOutputTokens",
  "imageInputTokens",
  "imageOutputTokens",
] as const;

function usageOf(options: CorrectOptions): Pick<StepCorrection, "usage"> {
  const { promptTokens, completionTokens } = options;
  const details = detailNames.flatMap((name) => {
    const count = options[name];
    return count === undefined ? [] : [[name, count] as const];
  });
  if (promptTokens === undefined && completionTokens === undefined && details.length === 0)
    return {};
  if (promptTokens === undefined || completionTokens === undefined)
    throw new CommandError("pass --prompt-tokens and --completion-tokens together", 2);
  return {
    usage: { promptTokens, completionTokens, ...Object.fromEntries(details) },
  };
}

function nanoUsd(text: string): number {
  const amount = parseUsd(text);
  if (amount !== null) return amount;
  throw new InvalidArgumentError(
    "It must be an amount such as 0.0125, with at most nine decimals.",
  );
}
