/**
 * Part of every test: no answer that a test reads, and nothing that it prints, contains a whole API key or the platform's
 * credential (S14). The test that reads or prints it fails.
 */
const secret = /\btg_[0-9A-Za-z]{49}\b|\bsk-platform/;
const isSwept = Symbol.for("tollgate.secret-sweep");

function sweep(text: string, what: string): void {
  const found = secret.exec(text)?.[0];
  if (found !== undefined) throw new Error(`${what} contains the secret ${found.slice(0, 7)}….`);
}

// Test files share their process, and each of them loads this file.
if (!Reflect.has(Response.prototype, isSwept)) {
  Reflect.set(Response.prototype, isSwept, true);
  const readText = Response.prototype.text;
  Reflect.set(Response.prototype, "text", async function text(this: Response): Promise<string> {
    const body = await readText.call(this);
    sweep(`${JSON.stringify([...this.headers])} ${body}`, "An answer");
    return body;
  });
  Reflect.set(Response.prototype, "json", async function json(this: Response): Promise<unknown> {
    return JSON.parse(await this.text());
  });
  for (const name of ["log", "info", "warn", "error", "debug"] as const) {
    const print = console[name];
    console[name] = (...words: readonly unknown[]) => {
      sweep(words.map(String).join(" "), "The output");
      print(...words);
    };
  }
}
