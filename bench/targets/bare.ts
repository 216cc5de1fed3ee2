/** The lower bound: nothing between. */
import { forward, kept, serveProxy } from "./proxy.ts";

serveProxy((incoming, outgoing, body) => {
  forward(incoming, body, {
    onRequestStart: () => {},
    onResponseStart: (_, status, headers) => {
      outgoing.writeHead(status, kept(headers));
    },
    onResponseData: (_, chunk) => void outgoing.write(chunk),
    onResponseEnd: () => void outgoing.end(),
    onResponseError: () => void outgoing.destroy(),
  });
});
