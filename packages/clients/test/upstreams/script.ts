/** One call of the scripted model. */
export interface ScriptedCall {
  readonly name: "get_weather" | "get_clothes" | "get_time";
  readonly args: Readonly<Record<string, string | number>>;
}

/** One answer that calls tools: its text and its calls. */
export interface ScriptedStep {
  readonly text: string;
  readonly calls: readonly ScriptedCall[];
}

/** One question, the steps until its answer, and the answer. */
export interface ScriptedTurn {
  readonly prompt: string;
  readonly steps: readonly ScriptedStep[];
  readonly answer: string;
}

/** The conversation of every scripted upstream: text before a call, then sequential calls, parallel calls and a call without arguments. */
export const turns: readonly ScriptedTurn[] = [
  {
    prompt: "How is the weather in Paris, and what should I wear?",
    steps: [
      { text: "Let me look.", calls: [{ name: "get_weather", args: { city: "Paris" } }] },
      { text: "", calls: [{ name: "get_clothes", args: { degrees: 18 } }] },
    ],
    answer: "It is 18 degrees in Paris: take a jacket.",
  },
  {
    prompt: "And in Oslo and Rome?",
    steps: [
      {
        text: "",
        calls: [
          { name: "get_weather", args: { city: "Oslo" } },
          { name: "get_weather", args: { city: "Rome" } },
        ],
      },
    ],
    answer: "It is 4 degrees in Oslo and 27 degrees in Rome.",
  },
  {
    prompt: "What time is it?",
    steps: [{ text: "", calls: [{ name: "get_time", args: {} }] }],
    answer: "It is noon.",
  },
];

/** The number of requests in the whole conversation. */
export const requestsOfConversation = turns.reduce((sum, { steps }) => sum + steps.length + 1, 0);

const degrees: Readonly<Record<string, string>> = { Paris: "18", Oslo: "4", Rome: "27" };

/** The results of the tools. */
export function toolResult({ name, args }: ScriptedCall): string {
  if (name === "get_weather") return `${degrees[String(args["city"])]} degrees`;
  return name === "get_clothes" ? "a jacket" : "noon";
}

/** The model's reasoning: text that a careless copy would change, different in every answer. */
export const thoughtOf = (number: number): string =>
  `Thought ${number}: the user "asks" \\n about <weather> — 🌦\n\u2028\t{"n":${number}} …  `;

/** An opaque signature, as long and as unusual as real ones. */
export const signatureOf = (number: number): string =>
  Buffer.from(`signature ${number} ${"~?>".repeat(40 + number)}`).toString("base64");
