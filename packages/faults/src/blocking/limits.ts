/** The default limits of a gateway, which determine the largest body or answer of each shape. */
export const defaultLimits = {
  bodyBytes: 4_194_304,
  imageBodyBytes: 8_388_608,
  stringBytes: 1_048_576,
  depth: 64,
  keys: 256,
  values: 131_072,
  messages: 2_000,
  tools: 128,
  answerParts: 1_024,
  answerBytes: 2_097_152,
  upstreamEventBytes: 1_048_576,
  upstreamBytes: 67_108_864,
} as const;
