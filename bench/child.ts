import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** A process of the bench that answers messages one at a time. Messages are not checked: both ends are in this folder. */
export interface Child {
  readonly pid: number;
  /** Its next message. */
  next<Message>(): Promise<Message>;
  /** Sends a message and returns the next one. */
  ask<Message>(message: object | string): Promise<Message>;
  /** Disconnects the process and waits until it ends; kills it after ten seconds. */
  stop(): Promise<void>;
}

const patience = 60_000;

export function startChild(
  file: string,
  options: {
    readonly arguments?: readonly string[];
    readonly execArgv?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Child {
  const child = fork(new URL(file, import.meta.url), options.arguments ?? [], {
    execArgv: [...process.execArgv, ...(options.execArgv ?? [])],
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const next = <Message>() => nextMessage<Message>(child, file);
  return {
    pid: child.pid ?? 0,
    next,
    ask<Message>(message: object | string) {
      const answer = next<Message>();
      child.send(message);
      return answer;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.disconnect();
      const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(timer);
    },
  };
}

function nextMessage<Message>(child: ChildProcess, file: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(() => reject(new Error(`${file} is silent`))), patience);
    const onMessage = (message: Message) => settle(() => resolve(message));
    const onExit = (code: number | null) =>
      settle(() => reject(new Error(`${file} ended with ${code}`)));
    child.once("message", onMessage).once("exit", onExit);
    function settle(then: () => void): void {
      clearTimeout(timer);
      child.off("message", onMessage).off("exit", onExit);
      then();
    }
  });
}
