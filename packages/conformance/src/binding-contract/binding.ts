import type { Gateway } from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";

/** A host that listens. */
export interface ServedBinding {
  /** Where the host listens, without the prefix: `http://127.0.0.1:49152`. */
  readonly url: string;
  /** Stops listening and cuts what is open. */
  close(): Promise<void>;
}

/** How the host mounts the gateway. */
export interface Mounting {
  /** The path to mount at, as in a URL: `/ai`, `/a%20b`. */
  readonly prefix: string;
  /** How long a client may leave an answer unread, in milliseconds. */
  readonly writeStall: number;
}

/** What the contract needs of a binding. */
export interface Binding {
  /** Starts a host on a free port of 127.0.0.1 that mounts the gateway and reads JSON bodies of up to 32 MiB. */
  readonly serve: (gateway: Gateway, mounting: Mounting) => Promise<ServedBinding>;
  /** A provider that calls an OpenAI-compatible server over HTTP, such as `openaiCompatible`: what leaves is read there. */
  readonly provider: (baseURL: string) => Provider;
  /**
   * Whether the gateway gets bodies as they were sent (`raw`, the default), or as a JSON parser of the host has left
   * them (`parsed`): then what such a parser loses is lost, and the contract says so in its tests.
   */
  readonly body?: "raw" | "parsed";
}
