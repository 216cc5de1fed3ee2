import { Chat } from "./chat.tsx";
import { Spend } from "./spend.tsx";

// Reads the spend on each request, never while Next builds.
export const dynamic = "force-dynamic";

export default function Page() {
  return (
    <main>
      <h1>A governed chat</h1>
      <div className="columns">
        <Chat />
        <Spend />
      </div>
    </main>
  );
}
