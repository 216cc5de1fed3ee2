import type { StepCorrection } from "@tollgate/core";
import type { UsageDetails } from "@tollgate/core/provider";
import type { Command } from "commander";
import { nanoUsd, wholeNumber } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { printRecord } from "../print.ts";
import { withAdministration } from "../with-administration.ts";

interface CorrectOptions extends UsageDetails {
  readonly organization: string;
  readonly reason: string;
  readonly attempt?: number;
  readonly costUsd?: number;
  readonly promptTokens?: number;
  readonly completionTokens?: number;
}

/** The option of each detail. Its flag is the detail's name in kebab case. */
const detailOptions: Readonly<
  Record<keyof UsageDetails, { readonly flags: string; readonly description: string }>
> = {
  cachedTokens: {
    flags: "--cached-tokens <count>",
    description: "cached tokens of the request",
  },
  reasoningTokens: {
    flags: "--reasoning-tokens <count>",
    description: "reasoning tokens of the answer",
  },
  cacheWriteTokens: {
    flags: "--cache-write-tokens <count>",
    description: "tokens of the request written to the cache",
  },
  cacheWrite1hTokens: {
    flags: "--cache-write-1h-tokens <count>",
    description: "written tokens that are cached for an hour",
  },
  audioInputTokens: {
    flags: "--audio-input-tokens <count>",
    description: "audio tokens of the request",
  },
  audioOutputTokens: {
    flags: "--audio-output-tokens <count>",
    description: "audio tokens of the answer",
  },
  imageInputTokens: {
    flags: "--image-input-tokens <count>",
    description: "image tokens of the request",
  },
  imageOutputTokens: {
    flags: "--image-output-tokens <count>",
    description: "image tokens of the answer",
  },
};

const detailNames = Object.keys(detailOptions).filter((name): name is keyof UsageDetails =>
  Object.hasOwn(detailOptions, name),
);

/** Adds `steps correct`. */
export function defineCorrection(noun: Command): void {
  const correcting = noun
    .command("correct <id>")
    .description(
      "correct the usage or cost of an attempt of a settled Step, and keep the original record",
    )
    .requiredOption("--organization <id>", "the organization of the Step")
    .requiredOption("--reason <text>", "the reason, at most 255 characters")
    .option("--attempt <number>", "the number of the attempt (default: the last)", wholeNumber(1))
    .option("--cost-usd <amount>", "cost in US dollars, such as 0.0125", nanoUsd)
    .option("--prompt-tokens <count>", "tokens of the request", wholeNumber(0))
    .option("--completion-tokens <count>", "tokens of the answer", wholeNumber(0));
  for (const { flags, description } of Object.values(detailOptions))
    correcting.option(flags, description, wholeNumber(0));
  correcting.action(correct);
}

async function correct(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<CorrectOptions>(command);
  const { organization, reason, attempt, costUsd } = options;
  const correction: StepCorrection = {
    organizationId: organization,
    id,
    reason,
    ...(attempt === undefined ? {} : { attempt }),
    ...(costUsd === undefined ? {} : { costNanoUsd: costUsd }),
    ...usageOf(options),
  };
  if (correction.costNanoUsd === undefined && correction.usage === undefined)
    throw new CommandError(
      "pass --cost-usd, or --prompt-tokens and --completion-tokens, or all three",
      2,
    );
  await withAdministration(command, async ({ steps }, { json, acting }) =>
    printRecord(json, await steps.correct({ ...correction, ...acting })),
  );
}

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
