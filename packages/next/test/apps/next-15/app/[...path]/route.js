// The handlers are the test's own: the server runs in its process. JavaScript, because Next 15 needs a TypeScript that
// has an API to read anything else.
const handlers = () => Reflect.get(globalThis, "tollgateHandlers");

export const dynamic = "force-dynamic";
export const GET = (request) => handlers().GET(request);
export const POST = (request) => handlers().POST(request);
export const DELETE = (request) => handlers().DELETE(request);
