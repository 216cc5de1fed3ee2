const traces: readonly RegExp[] = [
  /(?<![\w.:/-])\/(?:home|Users|root|work)\/[\w.-]+/,
  /\bregistry\.(?:npmjs|yarnpkg)\.\w+/,
  /\b(?:artifactory|verdaccio|nexus)\.[\w-]+\.\w+/,
];

/** Lists the lines that name a folder of one machine or a registry host. */
export const machineTraces = (path: string, text: string): readonly string[] =>
  text.split("\n").flatMap((line, index) =>
    traces.flatMap((trace) => {
      const found = trace.exec(line);
      return found === null ? [] : [`${path}:${index + 1} names ${found[0]}`];
    }),
  );
