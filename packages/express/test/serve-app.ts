import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { ServedBinding } from "@tollgate/conformance/binding-contract";

/** Serves an app on a free port. */
export async function serveApp(app: RequestListener): Promise<ServedBinding> {
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
