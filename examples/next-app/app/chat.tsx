"use client";

import { useRouter } from "next/navigation";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { converse } from "./converse.ts";
import { signIn } from "./sign-in.ts";

interface Line {
  readonly by: "you" | "model" | "tool" | "error";
  readonly text: string;
}

/** Adds to the model's current line, or begins one. */
function write(lines: readonly Line[], text: string): readonly Line[] {
  const last = lines.at(-1);
  if (last?.by !== "model") return [...lines, { by: "model", text }];
  return [...lines.slice(0, -1), { by: "model", text: last.text + text }];
}

export function Chat() {
  const router = useRouter();
  const isSignedIn = useRef(false);
  const messages = useRef<readonly ChatCompletionMessageParam[]>([]);
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [busy, setBusy] = useState(false);

  const list = useRef<HTMLOListElement>(null);
  // Scrolls to the newest line after each change.
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: "nearest" });
  }, [lines]);

  const add = (line: Line) => setLines((before) => [...before, line]);

  async function send(content: string): Promise<void> {
    add({ by: "you", text: content });
    try {
      if (!isSignedIn.current) await signIn();
      isSignedIn.current = true;
      const asked = [...messages.current, { role: "user", content } as const];
      messages.current = await converse(asked, {
        onText: (text) => setLines((before) => write(before, text)),
        onToolCall: (text) => add({ by: "tool", text }),
      });
    } catch (error) {
      add({ by: "error", text: error instanceof Error ? error.message : String(error) });
    }
    router.refresh(); // The server renders the spend again.
  }

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = event.currentTarget;
    const content = String(new FormData(form).get("message") ?? "").trim();
    if (content === "" || busy) return;
    form.reset();
    setBusy(true);
    await send(content);
    setBusy(false);
  }

  return (
    <section className="chat">
      <ol ref={list} aria-live="polite" aria-busy={busy}>
        {lines.map((line, index) => (
          <li key={index} className={line.by}>
            {line.text}
          </li>
        ))}
      </ol>
      <form onSubmit={submit}>
        <input
          name="message"
          aria-label="Message"
          placeholder="Say something, or ask for the weather"
          autoComplete="off"
        />
        <button type="submit" disabled={busy}>
          Send
        </button>
      </form>
    </section>
  );
}
