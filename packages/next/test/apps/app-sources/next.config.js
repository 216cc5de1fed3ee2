// The app needs nothing from this repository: what it serves comes from its own folder.
export default {
  output: "standalone",
  outputFileTracingRoot: import.meta.dirname,
  turbopack: { root: import.meta.dirname },
};
