import type { NextConfig } from "next";

const configuration: NextConfig = {
  // This folder, not the outermost one that has a lock file.
  turbopack: { root: import.meta.dirname },
};

export default configuration;
