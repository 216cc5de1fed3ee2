import type { RunnableToolFunctionWithParse } from "openai/lib/RunnableFunction";

interface Place {
  readonly city: string;
}

function readPlace(written: string): Place {
  const place: unknown = JSON.parse(written);
  if (typeof place !== "object" || place === null || !("city" in place)) {
    throw new Error("`get_weather` needs a city.");
  }
  return { city: String(place.city) };
}

/** A tool that runs in the browser and returns the same weather for every city. */
export const weatherTool: RunnableToolFunctionWithParse<Place> = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
    parse: readPlace,
    function: ({ city }) => `18 degrees and a light breeze in ${city}`,
  },
};
