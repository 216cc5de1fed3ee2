import type { Mountable } from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";

/** A listening host. */
export interface ServedBinding {
  /** Where the host listens, without the prefix: `http://127.0.0.1:49152`. */
  readonly url: string;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

/** How the host mounts the gateway. */
export interface Mounting {
  /** The path to mount at, as in a URL: `/ai`, `/a%20b`. */
  readonly prefix: string;
  /** How long a client may leave an answer unread, in milliseconds. */
  readonly writeStall: number;
}

/** A binding under test. */
export interface Binding {
  /** Starts a host on a free port of 127.0.0.1 that mounts the gateway, or the admin API, and reads JSON bodies of up to 32 MiB. */
  readonly serve: (gateway: Mountable, mounting: Mounting) => Promise<ServedBinding>;
  /** A provider that calls an OpenAI-compatible server over HTTP, such as `openaiCompatible`. The tests read its requests. */
  readonly provider: (baseURL: string) => Provider;
  /**
   * Whether the gateway receives bodies as sent (`raw`, the default) or parsed by the host (`parsed`). A parser loses
   * some details, which the tests take into account.
   */
  readonly body?: "raw" | "parsed";
}
