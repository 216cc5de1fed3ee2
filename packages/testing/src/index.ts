export {
  type ScriptedUpstream,
  scriptedUpstream,
  type UpstreamExchange,
} from "./faults/upstream.ts";
export { type SimOptions, simProvider } from "./sim.ts";
