// The lock file of the repository is not the root of this app.
export default {
  outputFileTracingRoot: import.meta.dirname,
  turbopack: { root: import.meta.dirname },
};
