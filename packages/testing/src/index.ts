export {
  type ScriptedUpstream,
  scriptedUpstream,
  type UpstreamExchange,
} from "./faults/upstream.ts";
